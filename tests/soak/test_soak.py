"""A few seconds of `make soak`, and proof that its checks notice what they are there for."""

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.soak.books import FORGOTTEN_SECONDS, Memory, Object, Owners, Page, doubled, unbalanced
from tests.soak.machine import cgroup_root
from tests.soak.observer import Seen, patched
from tests.soak.report import verdict
from tests.soak.soak import soak
from tests.soak.trend import trend


async def test_a_node_that_keeps_changing_is_booked_in_every_snapshot(library: Path, tmp_path: Path) -> None:
    root = cgroup_root()
    if root is None:
        pytest.skip("no cgroup can be made here: it takes root")
    least = Seen(snapshots=11, cards=41, tenants=6, samples=2)
    outcome = await soak(3.0, 7, tmp_path, root, library, least)
    assert verdict(outcome) == []


def booking(busy_us: int, energy_mj: int) -> Object:
    return {"busy_us": busy_us, "energy_mj": energy_mj, "memory_bytes": 10, "allocated_us": busy_us}


def tenant(busy_us: int, energy_mj: int) -> Object:
    container = {"namespace": "n", "pod": "p", "container": "c", "pod_uid": "u"}
    return {
        "mig": "",
        "container": container,
        "booking": booking(busy_us, energy_mj),
        "processes": [{"pid": 7}],
    }


def snapshot(at: float = 0.0) -> Object:
    """One card with a tenant and a rest, whose books balance."""
    card: Object = {
        "gpu": {"index": 0, "uuid": "GPU-0"},
        "tenants": [tenant(4, 40)],
        "ended": [],
        "rest": [{"reason": "idle", **booking(1, 2)}],
        "balance": {"busy_us": 5, "energy_mj": 42, "memory_bytes": 20},
    }
    return {"taken_at": at, "cards": [card], "errors": [{"source": "s", "reason": "r", "count": 3}]}


@pytest.mark.parametrize("name", ["busy_us", "energy_mj", "memory_bytes"])
def test_books_that_are_off_by_one_are_noticed(name: str) -> None:
    assert list(unbalanced(snapshot())) == []
    wrong = snapshot()
    wrong["cards"][0]["tenants"][0]["booking"][name] += 1
    (breach,) = unbalanced(wrong)
    assert name in breach


def test_what_is_listed_twice_is_noticed() -> None:
    assert list(doubled(snapshot())) == []
    wrong = snapshot()
    wrong["cards"][0]["ended"] = wrong["cards"][0]["tenants"]
    assert len(list(doubled(wrong))) == 1
    assert len(list(doubled({"cards": snapshot()["cards"] * 2}))) == 1


def lower(document: Object, *path: Any) -> Object:
    wrong = copy.deepcopy(document)
    at: Any = wrong
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] -= 1
    return wrong


@pytest.mark.parametrize(
    "path",
    [
        ("errors", 0, "count"),
        ("cards", 0, "balance", "energy_mj"),
        ("cards", 0, "rest", 0, "busy_us"),
        ("cards", 0, "tenants", 0, "booking", "allocated_us"),
    ],
)
def test_a_counter_that_falls_is_noticed_even_after_an_absence(path: tuple[str | int, ...]) -> None:
    memory = Memory()
    assert list(memory.fallen(snapshot())) == []
    assert list(memory.fallen({"taken_at": 1.0, "cards": [], "errors": []})) == []
    assert len(list(memory.fallen(lower(snapshot(2.0), *path)))) == 1


def test_a_name_may_begin_anew_when_its_totals_were_booked_as_ended() -> None:
    memory = Memory()
    assert list(memory.fallen(snapshot())) == []
    late = lower(snapshot(FORGOTTEN_SECONDS + 1), "cards", 0, "tenants", 0, "booking", "busy_us")
    assert list(memory.fallen(late)) == []


def test_a_process_of_somebody_else_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "owners").write_text("7 u\n")
    owners = Owners(tmp_path / "owners")
    assert list(owners.misplaced(snapshot())) == []
    (tmp_path / "owners").write_text("7 u\n7 v\n")
    wrong = snapshot()
    wrong["cards"][0]["tenants"][0]["container"]["pod_uid"] = "w"
    assert len(list(owners.misplaced(wrong))) == 1


def test_a_page_with_a_series_twice_or_a_counter_that_fell_is_noticed() -> None:
    page = Page()
    assert list(page.wrong('# TYPE a_total counter\na_total{x="y z"} 5\nb 9\n')) == []
    assert len(list(page.wrong('a_total{x="y z"} 4\nb 8\n'))) == 1
    assert len(list(page.wrong("b 9\nb 8\n"))) == 1


def test_a_change_is_laid_upon_the_document() -> None:
    before = {"a": 1, "b": [{"x": 1}, {"x": 2, "y": 3}], "c": [1, 2]}
    change = {"a": None, "b": {"1": {"y": None, "z": {"w": 1}}}, "c": [3]}
    assert patched(before, change) == {"b": [{"x": 1}, {"x": 2, "z": {"w": 1}}], "c": [3]}


def test_growth_is_told_from_noise() -> None:
    noise = [(float(second), second * 7919 % 13 / 13) for second in range(3000)]
    still = trend(noise)
    growing = trend([(at, value + at / 3600) for at, value in noise])
    assert still
    assert growing
    assert abs(still.slope) < 0.1
    assert growing.slope == pytest.approx(1, abs=0.1)
    assert growing.doubt < 0.1
    assert trend(noise[:60]) is None
