"""What notes gave pods outlives the agent, and goes with the pods."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from podgpu.agent.remembered_claims import FILE, FORGET_SECONDS, MAX_BYTES, RememberedClaims
from podgpu.model import Claim, ContainerRef, Pod

PART = Path(FILE).with_suffix(".part").name


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def claim(uid: str = "u", share: float = 0.5, source: str = "annotation") -> Claim:
    return Claim(gpu="GPU-1", container=ContainerRef("ns", "p", "c", uid), share=share, system="kai", source=source)


def pod(uid: str = "u", phase: str = "Running") -> Pod:
    return Pod(namespace="ns", name="p", uid=uid, phase=phase)


async def kept(folder: Path, *claims: Claim) -> None:
    first = RememberedClaims(folder)
    first.keep(claims, [pod(remembered.container.pod_uid) for remembered in claims])
    await first.save()


async def test_the_next_agent_begins_with_it(tmp_path: Path) -> None:
    await kept(tmp_path / "own", claim(), claim("v", source="podresources"))
    assert RememberedClaims(tmp_path / "own").before(()) == (claim(),)
    assert (tmp_path / "own" / FILE).stat().st_mode & 0o777 == 0o600


async def test_what_is_known_now_counts_for_more(tmp_path: Path) -> None:
    await kept(tmp_path, claim())
    assert RememberedClaims(tmp_path).before((claim(share=0.7),)) == (claim(share=0.7),)


async def test_the_annotation_of_another_system_does_not_replace_it(tmp_path: Path) -> None:
    """Someone may write it while the agent restarts, and the kubelet's list may come late."""
    await kept(tmp_path, claim())
    other = replace(claim(), system="koordinator")
    again = RememberedClaims(tmp_path)
    again.keep([other], [pod()])
    assert again.before((other,)) == (other, claim())


async def test_a_pod_that_is_listed_late_still_has_it_and_one_that_is_gone_has_not(tmp_path: Path) -> None:
    await kept(tmp_path, claim())
    clock = Clock()
    again = RememberedClaims(tmp_path, clock)
    again.keep((), ())
    clock.now += FORGET_SECONDS - 1
    again.keep((), [pod("other")])
    assert again.before(()) == (claim(),)
    clock.now += 2
    again.keep((), [pod("other")])
    assert again.before(()) == ()
    assert again.is_changed


async def test_a_pod_that_has_ended_has_nothing(tmp_path: Path) -> None:
    await kept(tmp_path, claim())
    again = RememberedClaims(tmp_path)
    again.keep((), [pod(phase="Succeeded")])
    assert again.before(()) == ()


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b"[{}]", b"\xff", b"[" * 100_000, b" " * (MAX_BYTES + 1)])
def test_a_file_that_makes_no_sense_is_none(tmp_path: Path, text: bytes) -> None:
    (tmp_path / FILE).write_bytes(text)
    assert RememberedClaims(tmp_path).before(()) == ()


async def test_a_pipe_in_the_folder_holds_nothing_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in (FILE, PART):
        os.mkfifo(tmp_path / name)
    first = RememberedClaims(tmp_path)
    assert "cannot be read" in caplog.text
    first.keep([claim()], [pod()])
    await first.save()
    assert RememberedClaims(tmp_path).before(()) == (claim(),)


async def test_a_link_in_the_folder_leads_nowhere(tmp_path: Path) -> None:
    """The agent may be root, and whoever made the link may not."""
    (tmp_path / "other").write_text("theirs")
    await kept(tmp_path / "theirs", claim("v"))
    own = tmp_path / "own"
    own.mkdir()
    (own / FILE).symlink_to(tmp_path / "theirs" / FILE)
    (own / PART).symlink_to(tmp_path / "other")
    assert RememberedClaims(own).before(()) == ()
    await kept(own, claim())
    assert (tmp_path / "other").read_text() == "theirs"
    assert RememberedClaims(own).before(()) == (claim(),)


@pytest.mark.parametrize("share", [-1.0, 7.0])
async def test_no_share_is_more_than_a_card(tmp_path: Path, share: float) -> None:
    await kept(tmp_path, claim(share=share))
    assert RememberedClaims(tmp_path).before(()) == ()


async def test_a_folder_that_cannot_be_written_costs_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    first = RememberedClaims(tmp_path / "file" / "below")
    for share in (0.1, 0.2):
        first.keep([claim(share=share)], [pod()])
        await first.save()
    assert first.before(()) == (claim(share=0.2),)
