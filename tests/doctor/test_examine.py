"""Each check is judged by itself: one that breaks spoils no other, and a new one is a function and a row."""

import pytest
from msgspec.structs import replace

from podgpu.doctor import CHECKS, Finding, Machine, Status, rendering
from podgpu.doctor.check import Check, CheckResult, named, passed, warned
from podgpu.insight.tenants import reading
from podgpu.model import Snapshot
from tests.doctor.sound_node import HERE, SOUND, WHOLE, examine, with_readings
from tools.checks import markdown


def breaks(_: Snapshot, __: Machine) -> CheckResult:
    raise ZeroDivisionError("nine\x1b[31m lives\n")


@pytest.mark.parametrize("name", ["gpu.broken", "gpu.*"])
def test_a_check_that_breaks_fails_by_itself_and_the_others_go_on(name: str) -> None:
    before, after = CHECKS[:5], CHECKS[5:]
    broken = Check(name, "It never works.", "Nothing helps.", breaks)
    findings = examine(SOUND, HERE, (*before, broken, *after))
    (finding,) = (finding for finding in findings if finding.id == name)
    assert finding.status is Status.FAIL
    assert finding.detail == "this check broke, which is a bug in podgpu: ZeroDivisionError: nine\ufffd[31m lives "
    assert "report" in finding.advice
    assert [finding for finding in findings if finding.id != name] == list(examine(SOUND, HERE))


def test_one_that_breaks_halfway_through_its_names_is_one_failure() -> None:
    nonsense = Check("part.*", "It never works.", "Nothing helps.", lambda *_: {"a": passed("fine"), "b": None})
    assert [(finding.id, finding.status) for finding in examine(SOUND, HERE, [nonsense])] == [("part.*", Status.FAIL)]


def heat(snapshot: Snapshot, _: Machine) -> CheckResult:
    hot = [card for card in snapshot.cards if (reading(card.readings, "temperature_celsius") or 0) > 90]
    return warned(f"{named(hot)}: too hot") if hot else passed("all are cool")


def test_a_new_check_is_one_function_and_one_row() -> None:
    row = Check("gpu.heat", "No card is too hot.", "Look at the fans.", heat)
    checks = (*CHECKS, row)
    hot = replace(SOUND, cards=(with_readings(WHOLE, temperature_celsius=95.0),))
    assert examine(SOUND, HERE, checks)[-1] == Finding(id="gpu.heat", status=Status.PASS, detail="all are cool")
    finding = examine(hot, HERE, checks)[-1]
    assert (finding.detail, finding.advice) == ("GPU 0: too hot", "Look at the fans.")
    assert "gpu.heat" in rendering.text(hot, (finding,), 80, colour=False)
    assert "| `gpu.heat` | No card is too hot. | Look at the fans. |" in markdown(checks)
