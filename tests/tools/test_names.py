"""A stable name that goes without notice is seen."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from podgpu import __version__
from podgpu.catalog import families
from podgpu.catalog.renames import RENAMES, Rename, minor_version
from tools.names import Promise, broken, main, released, served

POWER = Promise("podgpu_gpu_power_watts", "gauge", "stable", ("node", "gpu", "uuid"))
NOW = {POWER.name: POWER}


def test_the_names_of_the_last_release_are_kept() -> None:
    assert list(broken(released(), served())) == []
    assert len(released()) > 100


def test_a_family_is_as_stable_as_each_of_its_rows() -> None:
    assert [name for name, rows in families().items() if len({row.stability for row in rows}) > 1] == []


def test_a_name_that_is_gone_is_seen_unless_it_was_renamed() -> None:
    old = replace(POWER, name="podgpu_gpu_draw_watts")
    (line,) = broken([old], NOW)
    assert line.startswith("podgpu_gpu_draw_watts is gone: bring it back, or name its successor")
    assert list(broken([old], NOW, [Rename(old.name, POWER.name, "0.2")])) == []


def test_an_experimental_name_may_go() -> None:
    assert list(broken([replace(POWER, name="gone", stability="experimental")], NOW)) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stability": "experimental"}, "was stable and is experimental now"),
        ({"kind": "counter"}, "was a gauge and is a counter now: give it another name"),
        ({"labels": ("node", "uuid")}, "has lost its labels gpu"),
    ],
)
def test_a_stable_name_keeps_its_promise_type_and_labels(change: dict[str, object], message: str) -> None:
    assert list(broken([POWER], {POWER.name: replace(POWER, **change)})) == [f"{POWER.name} {message}"]
    wider = replace(POWER, labels=(*POWER.labels, "sensor"))
    assert list(broken([POWER], {POWER.name: wider})) == []


def test_a_rename_leads_somewhere_and_away_from_something() -> None:
    nowhere, still = Rename("a", "b", "0.2"), Rename(POWER.name, POWER.name, "0.2")
    assert [line.split(",")[0] for line in broken([], NOW, [nowhere])] == ["a was renamed to b"]
    assert "still in the catalog" in next(broken([], NOW, [still]))


def test_no_rename_is_of_a_version_to_come() -> None:
    assert [rename for rename in RENAMES if minor_version(rename.since) > minor_version(__version__)] == []


def test_a_release_writes_the_list_but_not_over_a_broken_promise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "names.txt"
    assert main(["--release"], path) == 0
    assert released(path) == list(served().values())
    with path.open("a") as file:
        file.write("podgpu_gone gauge stable node\n")
    before = path.read_text()
    assert main(["--release"], path) == 1
    assert path.read_text() == before
    assert "podgpu_gone is gone" in capsys.readouterr().out
