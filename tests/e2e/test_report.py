"""`podgpu report` over two days in a real Prometheus and a real VictoriaMetrics, against what really happened."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podgpu.cli.main import main
from podgpu.cluster.report import counter_reader
from tests.e2e import prometheus, victoria
from tests.e2e.past import HOUR, LENGTH, MINUTE, NODES, TENANTS, Past
from tests.e2e.stores import STORES, keeping

pytestmark = pytest.mark.skipif(
    prometheus.PROGRAM is None or victoria.PROGRAM is None,
    reason="prometheus or victoria-metrics is not installed",
)

PERIODS = [
    pytest.param((0, LENGTH), id="everything"),
    pytest.param((2 * HOUR + 30, 9 * HOUR), id="a pod that begins and ends within"),
    pytest.param((9 * HOUR, 11 * HOUR), id="a restart that small counters do not show"),
    pytest.param((10 * HOUR + 10 * MINUTE, 12 * HOUR), id="a restart shortly before"),
    pytest.param((24 * HOUR, 26 * HOUR), id="the store was down within"),
    pytest.param((12_345, 167_890), id="odd times"),
]
PRICES = {"currency": "EUR", "gpu_hour": {"NVIDIA H200": "3.50", "*": "1"}}


@pytest.fixture(scope="module")
def past() -> Past:
    return Past.recent()


@pytest.fixture(scope="module", params=STORES)
def store(request: pytest.FixtureRequest, past: Past, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with keeping(request.param, past.lines, tmp_path_factory.mktemp("store")) as url:
        yield url


@pytest.fixture(scope="module")
def made() -> dict[tuple[str, ...], Any]:
    return {}


@pytest.fixture
def report(store: str, past: Past, made: dict[tuple[str, ...], Any], capsys: pytest.CaptureFixture[str]) -> Any:
    def make(period: tuple[int, int], *more: str) -> Any:
        times = [time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(past.start + at)) for at in period]
        arguments = [
            f"--prometheus.url={store}",
            f"--from={times[0]}",
            f"--to={times[1]}",
            "-o",
            "json",
            *more,
        ]
        if tuple(arguments) not in made:
            assert main(["report", *arguments]) == 0
            made[tuple(arguments)] = json.loads(capsys.readouterr().out)
        return made[tuple(arguments)]

    return make


@pytest.mark.parametrize("period", PERIODS)
def test_every_number_is_what_really_happened(report: Any, past: Past, period: tuple[int, int]) -> None:
    statement = report(period, "--by=pod")
    had = {
        row["pod"]: (row["gpu_seconds"], row["busy_seconds"], row["energy_joules"])
        for row in statement["rows"]
        if row["row"] == "group"
    }
    assert had == {pod: sums for pod in _pods() if any(sums := _sums(past, pod, period))}
    [rest] = [row for row in statement["rows"] if row["row"] == "unattributed"]
    assert rest["busy_seconds"] == _all(past, ("idle", "host"), "busy", period) / 1e6
    assert rest["energy_joules"] == _all(past, ("idle", "host"), "energy", period) / 1e3


@pytest.mark.parametrize("period", PERIODS)
def test_the_rows_add_up_to_what_the_gpus_counted(report: Any, past: Past, period: tuple[int, int]) -> None:
    statement = report(period, "--by=pod")
    for name, unit in (("busy_seconds", 1e6), ("energy_joules", 1e3), ("gpu_seconds", 1e6)):
        rows = sum(round(row.get(name, 0) * unit) for row in statement["rows"])
        assert rows == round(statement["total"][name] * unit)
    assert statement["total"]["energy_joules"] == _all(past, ("meter",), "energy", period) / 1e3
    assert statement["total"]["busy_seconds"] == _all(past, ("booked",), "busy", period) / 1e6
    assert statement["total"]["gpu_seconds"] == pytest.approx(_present(period), abs=2 * MINUTE)


def test_many_restless_nodes_are_read_part_by_part(report: Any, past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counter_reader, "SCRAPES_TO_FETCH", 0)
    period = (9 * HOUR, 13 * HOUR)
    rows = report(period, "--by=pod", "--no-headers")["rows"]
    had = {row["pod"]: row["energy_joules"] for row in rows if row["row"] == "group"}
    assert had == {pod: _sums(past, pod, period)[2] for pod in ("trainer-0", "late-0")}


def test_what_no_agent_booked_is_a_row_of_its_own(report: Any) -> None:
    """The agent's books of one minute were lost when it restarted; the GPU's own counter has them."""
    [lost] = [row for row in report((14 * HOUR, 16 * HOUR))["rows"] if row["row"] == "unbooked"]
    assert lost["energy_joules"] == (0.5 * 80 + 0.4 * 400 + 0.5 * 80 + 0.05 * 400) * MINUTE
    assert lost["busy_seconds"] == 0


def test_two_periods_side_by_side_add_up_to_both(report: Any) -> None:
    first, second, both = (
        report(period)["total"]["energy_joules"] for period in ((5000, 40_000), (40_000, 90_000), (5000, 90_000))
    )
    assert first + second == pytest.approx(both, abs=0.001)


def test_a_name_that_changed_teams_is_booked_to_each_in_its_time(report: Any, past: Past) -> None:
    """`job-0` was blue's in the morning of the first day and green's on the second."""
    statement = report((0, LENGTH), "--by=team")
    held = {row["label_team"]: row["gpu_seconds"] for row in statement["rows"] if row["row"] == "group"}
    expected: dict[str, float] = {}
    for tenant in TENANTS:
        first, last = tenant.begins, min(tenant.ends, LENGTH)
        expected[tenant.team] = (
            expected.get(tenant.team, 0.0) + past.total((tenant.pod, "held", tenant.node), first, last) / 1e6
        )
    assert held == pytest.approx(expected)


def test_costs_are_of_the_model_that_was_held(report: Any, past: Past, tmp_path: Path) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps(PRICES))
    statement = report((0, LENGTH), "--by=node", f"--price={prices}")
    costs = {row["node"]: row["cost"] for row in statement["rows"] if row["row"] == "group"}
    hours = {node: _on_node(past, node) / 3.6e9 for node in NODES}
    assert costs == pytest.approx({"alpha": hours["alpha"] * 3.50, "beta": hours["beta"]}, abs=0.01)
    assert statement["total"]["cost"] == 48 * 3.50 + 20
    assert sum(round(100 * row.get("cost", 0)) for row in statement["rows"]) == round(100 * statement["total"]["cost"])


def _pods() -> set[str]:
    return {tenant.pod for tenant in TENANTS}


def _sums(past: Past, pod: str, period: tuple[int, int]) -> tuple[float, float, float]:
    held, busy, energy = (_all(past, (pod,), name, period) for name in ("held", "busy", "energy"))
    return held / 1e6, busy / 1e6, energy / 1e3


def _all(past: Past, names: tuple[str, ...], quantity: str, period: tuple[int, int]) -> int:
    return sum(past.total((name, quantity, node), *period) for name in names for node in NODES)


def _on_node(past: Past, node: str) -> int:
    return sum(past.total((pod, "held", node), 0, LENGTH) for pod in _pods())


def _present(period: tuple[int, int]) -> float:
    return sum(max(min(period[1], ends) - max(period[0], begins), 0) for begins, ends in NODES.values())
