"""A real Prometheus scrapes the demo, and every query of the documentation answers what the snapshots say.

`PODGPU_SOAK_SECONDS` makes the run longer: `make soak-demo`.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest

from tests.e2e import documented as of
from tests.e2e.documented import HOUR, Key, Row, Rows, Run, documented, run
from tests.e2e.prometheus import PROGRAM, Job, prometheus
from tests.e2e.recorder import Recorder
from tests.e2e.rig import demo

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="prometheus is not installed")

SECONDS = float(os.environ.get("PODGPU_SOAK_SECONDS", "30"))
# Prometheus extends an increase by up to half a scrape to the left and one to the right.
EXTENDED = 1 + 2.5 / SECONDS
ROUNDING = 1e-9
WATTS = 0.01

# Queries that the demo has no answer to, and why that is right.
EMPTY: Mapping[str, str] = {
    "containers that use a GPU without an allocation": "every pod of the demo holds what it uses",
    "GPUs that no container holds": "each card of the demo is allocated at least in part",
}


@dataclass(frozen=True)
class Answer:
    """What the snapshots say to a query; `extends` is by how much Prometheus may be above or below that."""

    labels: str
    rows: Callable[[Run], Rows]
    extends: tuple[float, float] = (1.0, 1.0)


# The labels that a query groups by, and the same of a tenant.
GROUPS: Mapping[str, tuple[str, Callable[[Run], Key]]] = {
    "namespace": ("namespace", lambda _: of.namespace),
    "team": ("label_team", lambda run: run.team),
    "workload": ("namespace workload_kind workload_name", lambda _: of.workload),
}


def grown(counter: str, by: str, unit: float) -> Answer:
    """An increase, or a rate, of a booking's counter."""
    labels, key = GROUPS[by]
    return Answer(labels, lambda run: run.increase(counter, key(run), unit), (1.0, EXTENDED))


def used(run: Run) -> Rows:
    busy, held = (run.increase(counter, of.namespace, 1) for counter in ("busy_us", "allocated_us"))
    return {row: busy[row] / held[row] for row in held}


def full(run: Run) -> Rows:
    found = ((of.pod(tenant), tenant["booking"]) for tenant in of.tenants(run.last))
    ratios = {
        row: booking["memory_bytes"] / booking["memory_limit_bytes"]
        for row, booking in found
        if booking.get("memory_bytes") and booking.get("memory_limit_bytes")
    }
    return {row: ratio for row, ratio in ratios.items() if ratio > 0.95}


def left(run: Run) -> Rows:
    held = run.now("allocated_ratio", of.card)
    return {row: 1 - ratio for row, ratio in held.items() if ratio < 0.999}


def unheld(run: Run) -> Rows:
    held = {tenant["mig"] for tenant in of.tenants(run.last)}
    parts = (part for card in run.last["cards"] for part in card["instances"])
    return {
        (part["mig"]["uuid"],): next(
            reading["value"] for reading in part["readings"] if reading["metric"] == "memory_total_bytes"
        )
        for part in parts
        if part["mig"]["uuid"] not in held
    }


def idle(run: Run) -> Rows:
    """Whoever has held for long, and never worked since the demo began."""
    return {
        of.pod(tenant): tenant["booking"]["allocated_ratio"]
        for tenant in of.tenants(run.last)
        if "last_active_at" not in tenant["booking"] and run.at - tenant["held_since"] > 1800
    }


def slowed(reason: str) -> Callable[[Run], Rows]:
    """The share of an hour in which a card was slowed down, for each pod on it."""

    def rows(run: Run) -> Rows:
        before, after = _throttled(run.first, reason), _throttled(run.last, reason)
        shares = {uuid: (total - before[uuid]) / HOUR for uuid, total in after.items()}
        found = {of.pod(tenant): shares[of.card(tenant)[0]] for tenant in of.tenants(run.last)}
        return {row: share for row, share in found.items() if share > 0}

    return rows


def _throttled(snapshot: of.Snapshot, reason: str) -> dict[str, float]:
    return {
        card["gpu"]["uuid"]: next(
            reading["value"]
            for reading in card["readings"]
            if reading["metric"] == "throttle_seconds_total" and reading["labels"]["reason"] == reason
        )
        for card in snapshot["cards"]
    }


def bounds(run: Run) -> Rows:
    return _ends(run, "")


def likely(run: Run) -> Rows:
    return _ends(run, "likely_")


def _ends(run: Run, prefix: str) -> Rows:
    return {
        (*row, end): value
        for end in ("least", "most")
        for row, value in run.increase(f"{prefix}{end}_busy_us", of.pod, 1e6 * HOUR).items()
    }


def booked(run: Run) -> Rows:
    totals = [
        {(card["gpu"]["uuid"],): card["balance"]["energy_mj"] / 1e3 for card in snapshot["cards"]}
        for snapshot in (run.first, run.last)
    ]
    return {row: total - totals[0][row] for row, total in totals[1].items()}


ANSWERS: Mapping[str, Answer] = {
    **{
        f"{measure}, by {by}": grown(counter, by, unit)
        for by in GROUPS
        for measure, counter, unit in (
            ("GPUs kept busy over the last hour", "busy_us", 1e6 * HOUR),
            ("GPU-hours held in a day", "allocated_us", 1e6 * HOUR),
            ("kilowatt-hours in a day", "energy_mj", 1e3 * 3.6e6),
            ("cost of a day, at 2.50 for a GPU-hour", "allocated_us", 1e6 * HOUR / 2.5),
        )
    },
    "cost of a day with a price for each model, by namespace": grown("allocated_us", "namespace", 1e6 * HOUR / 2.5),
    "share of the time held that was used, by namespace": Answer("namespace", used, (1 / EXTENDED, EXTENDED)),
    "GPUs in use, by namespace, now": Answer("namespace", lambda run: run.now("sm_ratio", of.namespace)),
    "watts, by pod, now": Answer("namespace pod", lambda run: run.now("power_watts", of.pod)),
    "pods near their memory limit": Answer("namespace pod", full),
    "what is left of GPUs that are held in part": Answer("uuid", left),
    "MIG instances that no container holds, and their memory": Answer("mig", unheld),
    "GPUs held, by node": Answer("node", lambda run: run.now("allocated_ratio", lambda _: (run.last["node"],))),
    "containers that hold a GPU and did not use it for half an hour": Answer("namespace pod", idle),
    "share of the last hour in which a GPU was throttled by heat, for each pod on it": Answer(
        "namespace pod", slowed("thermal"), (1.0, EXTENDED)
    ),
    "share of the last hour in which a GPU was throttled by its power limit, for each pod on it": Answer(
        "namespace pod", slowed("power"), (1.0, EXTENDED)
    ),
    "GPUs likely kept busy, from and to, by pod": Answer("namespace pod end", likely, (1.0, EXTENDED)),
    "GPUs kept busy at least and at most, as far as that is proven, by pod": Answer(
        "namespace pod bound", bounds, (1.0, EXTENDED)
    ),
    "all energy of each GPU in an hour, from the books": Answer("uuid", booked, (1.0, EXTENDED)),
}


@pytest.fixture(scope="module")
def over(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """One run for all queries."""
    folder = tmp_path_factory.mktemp("documented")
    with demo(["native"], folder / "demo.log", "--interval=1s") as node, Recorder({"demo": node}) as recorded:
        job = Job("podgpu", f"{node.urls['native']}/metrics")
        with prometheus([job], folder) as scraper:
            time.sleep(SECONDS)
            yield run(scraper, recorded, "demo")


@pytest.mark.parametrize("title", documented())
def test_a_query_is_answered(over: Run, title: str) -> None:
    answer = over.scraper.query(documented()[title])
    assert bool(answer) != (title in EMPTY)


@pytest.mark.parametrize("title", ANSWERS)
def test_a_query_answers_what_the_snapshots_say(over: Run, title: str) -> None:
    answer = ANSWERS[title]
    found = over.rows(documented()[title], tuple(answer.labels.split()))
    assert_agrees(found, answer.rows(over), answer.extends)


def assert_agrees(found: Rows, wanted: Rows, extends: tuple[float, float]) -> None:
    assert found.keys() == wanted.keys()
    lowest, highest = extends
    outside: dict[Row, tuple[float, float]] = {
        row: (found[row], value)
        for row, value in wanted.items()
        if not lowest * value - ROUNDING <= found[row] <= highest * value + ROUNDING
    }
    assert outside == {}


def test_no_answer_is_left_without_a_query() -> None:
    assert ANSWERS.keys() | EMPTY.keys() <= documented().keys()


def seconds_of(over: Run, expression: str) -> Rows:
    """In how many seconds of the run there was an answer, by card."""
    return over.rows(f"count_over_time(({expression})[1d:1s])", ("uuid",))


def watched(over: Run) -> set[float]:
    """How many seconds there were."""
    found = set(seconds_of(over, "podgpu_gpu_up").values())
    assert min(found) > SECONDS / 2
    return found


def test_containers_never_use_more_than_their_card(over: Run) -> None:
    used = "sum by (uuid) (podgpu_container_sm_utilization_ratio)"
    assert set(seconds_of(over, used).values()) == watched(over)
    assert seconds_of(over, f"{used} > 1.0001") == {}


def test_containers_never_draw_more_than_their_card(over: Run) -> None:
    spare = "podgpu_gpu_power_watts - on (uuid) sum by (uuid) (podgpu_container_power_watts)"
    assert set(seconds_of(over, f"max by (uuid) ({spare})").values()) == watched(over)
    assert seconds_of(over, f"max by (uuid) ({spare}) < -{WATTS}") == {}


def test_who_is_alone_draws_what_the_card_draws_at_every_second(over: Run) -> None:
    alone = "sum by (uuid) (podgpu_container_power_watts) and on (uuid) podgpu_container_allocated_ratio == 1"
    off = f"abs(({alone}) - on (uuid) max by (uuid) (podgpu_gpu_power_watts))"
    compared = seconds_of(over, off)
    assert len(compared) == 4
    assert set(compared.values()) == watched(over)
    assert seconds_of(over, f"{off} > {WATTS}") == {}
