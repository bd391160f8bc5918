"""What holds for every check: how it is listed, what it may print, and what happens when it breaks."""

import re
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podgpu.doctor import CHECKS, Finding, Machine, Status, examine, sheet
from podgpu.doctor.listing import markdown
from podgpu.doctor.look import named, number
from podgpu.doctor.verdict import Check, Verdict, passed, warned
from podgpu.model import Allocation, Holder, SharingStatus, Snapshot
from tests.doctor.sound_node import HERE, SOUND, WHOLE, held_by, with_readings

NAMES = st.text(max_size=300)


def test_ids_are_unique_dotted_and_stand_by_area() -> None:
    ids = [check.id for check in CHECKS]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z]+\.([a-z]+(-[a-z]+)*|\*)", one) for one in ids)
    areas = [one.partition(".")[0] for one in ids]
    assert len([area for area, _ in groupby(areas)]) == len(set(areas))


def test_every_check_says_what_it_means_and_what_to_do() -> None:
    assert all(check.meaning.endswith(".") and check.remedy.endswith(".") for check in CHECKS)


@given(NAMES, NAMES, NAMES)
def test_names_from_pods_never_steer_the_terminal(pod: str, resource: str, reason: str) -> None:
    snapshot = replace(
        SOUND,
        unclaimed=(Allocation(namespace="n", pod=pod, container="c", resource=resource, device_id=resource),),
        sharing=(SharingStatus(system=pod, missing=reason),),
        cards=(
            replace(
                held_by(Holder(pid=1, kind="unknown", reason=reason, cgroup=pod))[0],
                gpu=replace(WHOLE.gpu, uuid=pod, model=pod, compute_capability=reason),
            ),
        ),
    )
    for one in examine(snapshot, HERE):
        assert not re.search("[\x00-\x1f\x7f-\x9f\ud800-\udfff]", one.id + one.detail + one.advice)


def test_an_empty_snapshot_is_judged_without_a_crash() -> None:
    empty = Snapshot(node="", taken_at=0.0, interval_seconds=1.0, version="")
    assert examine(empty, Machine(now=0.0))


def breaks(_: Snapshot, __: Machine) -> Verdict:
    raise ZeroDivisionError("nine\x1b[31m lives\n")


@pytest.mark.parametrize("name", ["gpu.broken", "gpu.*"])
def test_a_check_that_breaks_fails_by_itself_and_the_others_go_on(name: str) -> None:
    before, after = CHECKS[:5], CHECKS[5:]
    broken = Check(name, "It never works.", "Nothing helps.", breaks)
    findings = examine(SOUND, HERE, (*before, broken, *after))
    (finding,) = (one for one in findings if one.id == name)
    assert finding.status is Status.FAIL
    assert (
        finding.detail
        == "this check broke, which is a bug in podgpu: ZeroDivisionError: nine\ufffd[31m lives "
    )
    assert "report" in finding.advice
    assert [one for one in findings if one.id != name] == list(examine(SOUND, HERE))


def test_one_that_breaks_halfway_through_its_names_is_one_failure() -> None:
    nonsense = Check(
        "part.*", "It never works.", "Nothing helps.", lambda *_: {"a": passed("fine"), "b": None}
    )
    assert [(one.id, one.status) for one in examine(SOUND, HERE, [nonsense])] == [("part.*", Status.FAIL)]


def heat(snapshot: Snapshot, _: Machine) -> Verdict:
    hot = [card for card in snapshot.cards if (number(card.readings, "temperature_celsius") or 0) > 90]
    return warned(f"{named(hot)}: too hot") if hot else passed("all are cool")


def test_a_new_check_is_one_function_and_one_row() -> None:
    row = Check("gpu.heat", "No card is too hot.", "Look at the fans.", heat)
    checks = (*CHECKS, row)
    hot = replace(SOUND, cards=(with_readings(WHOLE, temperature_celsius=95.0),))
    assert examine(SOUND, HERE, checks)[-1] == Finding(
        id="gpu.heat", status=Status.PASS, detail="all are cool"
    )
    finding = examine(hot, HERE, checks)[-1]
    assert (finding.detail, finding.advice) == ("GPU 0: too hot", "Look at the fans.")
    assert "gpu.heat" in sheet.text(hot, (finding,), 80, colour=False)
    assert "| `gpu.heat` | No card is too hot. | Look at the fans. |" in markdown(checks)
