"""An XID is reported with who was on the card, on every screen in the same words."""

import pytest

from podgpu.insight import conclude
from podgpu.model import Card, ContainerRef, Gpu, Problem, Process, Reading, Snapshot, Tenant, XidRecord
from podgpu.views.why import why
from tests.tree import SETTINGS

AT = 1_760_000_000.0
TRAIN, NOTEBOOK = (ContainerRef("ml", pod, "main", pod) for pod in ("train-0", "notebook-1"))
WHO = {
    (TRAIN,): " while ml/train-0 was on it",
    (TRAIN, NOTEBOOK): " while ml/train-0, ml/notebook-1 were on it",
    (): " while no pod was on it, held by ml/notebook-1",
    None: ", held by ml/notebook-1",
}


def snapshot(present: tuple[ContainerRef, ...] | None) -> Snapshot:
    holders = () if present else (NOTEBOOK,)
    record = XidRecord(xid=31, at=AT, meaning="GPU memory page fault", present=present, holders=holders)
    readings = (Reading("xid_last_code", 31), Reading("xid_last_timestamp_seconds", AT))
    tenant = Tenant(container=TRAIN, processes=(Process(pid=1, kinds=("compute",)),))
    card = Card(gpu=Gpu(uuid="GPU-0", index=0), readings=readings, tenants=(tenant,), xids=(record,))
    node = Snapshot(node="n", taken_at=AT + 60, interval_seconds=5.0, version="1", cards=(card,))
    return conclude(node, SETTINGS)


@pytest.mark.parametrize(("present", "words"), WHO.items())
def test_the_problem_names_who_was_on_the_card(present: tuple[ContainerRef, ...] | None, words: str) -> None:
    insight = snapshot(present).insight
    assert insight is not None
    (problem,) = [problem for problem in insight.problems if problem.kind == "xid"]
    assert problem.text == f"GPU 0 raised XID 31 (GPU memory page fault){words}."


def raised(*codes: int, age: float = 60) -> Problem:
    """The problem of a card that raised these, the last one last."""
    records = [XidRecord(xid=code, at=AT + number) for number, code in enumerate(codes)]
    readings = (Reading("xid_last_code", codes[-1]), Reading("xid_last_timestamp_seconds", records[-1].at))
    card = Card(gpu=Gpu(uuid="GPU-0", index=0), readings=readings, xids=tuple(reversed(records)))
    node = Snapshot(node="n", taken_at=AT + age, interval_seconds=5.0, version="1", cards=(card,))
    insight = conclude(node, SETTINGS).insight
    assert insight is not None
    (problem,) = [problem for problem in insight.problems if problem.kind == "xid"]
    return problem


@pytest.mark.parametrize(("code", "severity"), {31: "info", 94: "warning", 79: "critical", 999: "warning"}.items())
def test_an_xid_is_as_grave_as_its_code(code: int, severity: str) -> None:
    assert raised(code).severity == severity


def test_the_problem_says_whose_fault_it_usually_is_and_what_to_do() -> None:
    assert raised(31).next_step.startswith("A program on the card is usually the cause. Restart the pod")
    assert "reboot" in raised(79).next_step


def test_after_an_hour_an_xid_is_one_degree_less_grave() -> None:
    assert raised(79, age=3700).severity == "warning"
    assert raised(31, age=3700).severity == "info"


def test_an_xid_that_follows_from_a_graver_one_does_not_hide_it() -> None:
    problem = raised(48, 63, 45)
    assert (problem.title, problem.severity) == ("XID 48", "critical")


def test_a_program_that_failed_comes_after_what_is_wrong_with_cards() -> None:
    hot = Reading("clock_event", 1, ("hardware_thermal",))
    readings = (hot, Reading("xid_last_code", 31), Reading("xid_last_timestamp_seconds", AT))
    card = Card(gpu=Gpu(uuid="GPU-0", index=0), readings=readings)
    node = Snapshot(node="n", taken_at=AT + 60, interval_seconds=5.0, version="1", cards=(card,))
    concluded = conclude(node, SETTINGS)
    assert concluded.insight is not None
    assert [problem.title for problem in concluded.insight.problems] == ["Throttled", "XID 31"]
    assert concluded.cards[0].severity == "warning"


def test_a_pod_is_shown_the_xids_of_its_time_alone() -> None:
    said = why(snapshot((TRAIN, NOTEBOOK)), "ml", "train-0", 200)
    assert said is not None
    assert "XID 31 (GPU memory page fault) at 2025-10-09 08:53:20 UTC, while ml/train-0, ml/notebook-1" in said
    other = why(snapshot((NOTEBOOK,)), "ml", "train-0", 200)
    assert other is not None
    assert "XID" not in other
