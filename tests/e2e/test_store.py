"""Three agents, scraped by a real Prometheus and a real VictoriaMetrics, and a cluster on top of each of the three."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import pytest

from podgpu.cli.main import main
from podgpu.cluster.store.pod_history import LEAST_STEP, METRICS
from podgpu.insight import with_answers
from podgpu.model import of_one
from podgpu.views.cluster import json as cluster_json
from tests.agreement import surfaces
from tests.agreement.facts import compared
from tests.e2e import prometheus, victoria
from tests.e2e.kubernetes import kubernetes, whole_cards
from tests.e2e.prometheus import Job
from tests.e2e.recorder import Recorder
from tests.e2e.rig import Demo, cluster, demo, eventually, get

pytestmark = pytest.mark.skipif(
    prometheus.PROGRAM is None or victoria.PROGRAM is None,
    reason="prometheus or victoria-metrics is not installed",
)

NODES = ("alpha", "beta", "gamma")
STORES = ("prometheus", "victoria-metrics")
SECONDS = 5  # that are reported on
COUNTERS = {  # of a booking: the store's name, and its unit
    "busy_us": ("podgpu_container_busy_seconds_total", 1e6),
    "energy_mj": ("podgpu_container_energy_joules_total", 1e3),
    "allocated_us": ("podgpu_container_allocated_seconds_total", 1e6),
}
GAUGES = (
    "memory_bytes",
    "sm_ratio",
    "allocated_ratio",
    "power_watts",
    "last_active_at",
    "processes",
    "method",
)

BOOKED, TAKEN = "podgpu_gpu_booked_energy_joules_total", "podgpu_snapshot_timestamp_seconds"
T = TypeVar("T")
Tenant = tuple[str, str, str, str, str]
Series = tuple[Mapping[str, str], list[tuple[float, float]]]


@dataclass(frozen=True)
class Rig:
    """`urls` are those of the stores, `clusters` those of a cluster on top of each store, and of the agents."""

    agents: Mapping[str, Demo]
    recorder: Recorder
    urls: Mapping[str, str]
    clusters: Mapping[str, str]

    def is_filled(self, store: str) -> bool:
        """Whether every agent has been scraped for as long as is reported on."""
        now = time.time()
        first = [samples[0][0] for _, samples in self.samples(store, "podgpu_up", now)]
        return len(first) == len(NODES) and now - max(first) > SECONDS + 4

    def samples(
        self, store: str, selector: str, at: float
    ) -> list[tuple[Mapping[str, str], list[tuple[float, float]]]]:
        """The raw samples of the last half minute. What is no number marks a scrape that failed."""
        query = urlencode({"query": f"{selector}[30s]", "time": str(at)})
        answer = get(f"{self.urls[store]}/api/v1/query?{query}").json()
        found = [
            (series["metric"], [(when, float(value)) for when, value in series["values"] if value.lower() != "nan"])
            for series in answer["data"]["result"]
        ]
        return sorted(found, key=lambda series: sorted(series[0].items()))


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("store")
    with ExitStack() as stack, ThreadPoolExecutor() as pool:

        def side_by_side(programs: Mapping[str, AbstractContextManager[T]]) -> dict[str, T]:
            return dict(zip(programs, pool.map(stack.enter_context, programs.values()), strict=True))

        agents = side_by_side(
            {node: demo(["native", "dcgm"], folder / node, f"--node-name={node}", "--interval=1s") for node in NODES}
        )
        addresses = {node: agent.urls["native"] for node, agent in agents.items()}
        urls = side_by_side(_stores(addresses, folder))
        options = {name: f"--prometheus.url={url}" for name, url in urls.items()}
        snapshots = {node: agent.snapshot() for node, agent in agents.items()}
        pages = {node: agent.urls["dcgm"] for node, agent in agents.items()}
        options["dcgm"] = f"--kube.api={stack.enter_context(kubernetes(snapshots, pages))}"
        options["api"] = f"--kube.api={stack.enter_context(kubernetes(snapshots, {}))}"
        options["agents"] = f"--cluster.agents={','.join(addresses.values())}"
        given = {name: [option] for name, option in options.items()}
        given["both"] = [f"--cluster.agents={addresses['alpha']}", options["prometheus"]]
        clusters = side_by_side({name: cluster(folder / f"of-{name}", *some) for name, some in given.items()})
        here = Rig(agents, stack.enter_context(Recorder(agents)), urls, clusters)
        assert eventually(lambda: all(here.is_filled(store) for store in urls))
        yield here


def _stores(agents: Mapping[str, str], folder: Path) -> dict[str, AbstractContextManager[str]]:
    jobs = [Job(node, f"{url}/metrics") for node, url in agents.items()]
    scrape = {
        "global": {"scrape_interval": "2s", "scrape_timeout": "2s"},
        "scrape_configs": [job.configuration("") for job in jobs],
    }
    return {
        "prometheus": _address(prometheus.prometheus(jobs, folder)),
        "victoria-metrics": victoria.victoria(folder / "victoria", scrape),
    }


@contextmanager
def _address(opened: AbstractContextManager[prometheus.Prometheus]) -> Iterator[str]:
    with opened as here:
        yield here.url


def _nodes(rig: Rig, name: str) -> dict[str, Any]:
    return {node["name"]: node for node in get(f"{rig.clusters[name]}/api/v1/cluster").json()["nodes"]}


def _at_one_time(rig: Rig, origin: str, name: str) -> tuple[Any, Any]:
    """Return what the store shows, and what the agent itself showed when it was scraped."""

    def pair() -> tuple[Any, Any]:
        node = _nodes(rig, origin)[name]
        assert node["origin"] == "store"
        return node["snapshot"], rig.recorder.at(name, node["snapshot"]["taken_at"])

    shown, agents = eventually(pair, lambda found: found[1] is not None)
    assert agents, "the agent's snapshot was missed"
    return shown, agents


def _tenants(snapshot: Any) -> dict[Tenant, Any]:
    found = {}
    for card in snapshot["cards"]:
        for tenant in card["tenants"]:
            ref = tenant["container"]
            key = (card["gpu"]["uuid"], tenant.get("mig", ""), ref["namespace"], ref["pod"], ref["container"])
            found[key] = tenant
    return found


@pytest.mark.parametrize("origin", STORES)
def test_a_store_shows_what_the_agents_showed_at_that_time(rig: Rig, origin: str) -> None:
    states = eventually(
        lambda: {name: node["state"] for name, node in _nodes(rig, origin).items()},
        lambda found: found == dict.fromkeys(NODES, "fresh"),
    )
    assert states == dict.fromkeys(NODES, "fresh")
    for name in NODES:
        # VictoriaMetrics may take a moment longer to show a series that is new, such as that of a first activity.
        assert eventually(partial(_differences, rig, origin, name), lambda found: not found) == []


def _differences(rig: Rig, origin: str, name: str) -> list[tuple[Any, ...]]:
    return list(_found_different(*_at_one_time(rig, origin, name)))


def _found_different(shown: Any, agents: Any) -> Iterator[tuple[Any, ...]]:
    """What a store shows otherwise than the agent did at that time."""
    theirs, tenants = _tenants(shown), _tenants(agents)
    if theirs.keys() != tenants.keys():
        yield "tenants", theirs.keys() ^ tenants.keys()
        return
    for key, stored in theirs.items():
        live = tenants[key]
        pairs = {
            **dict.fromkeys((*COUNTERS, *GAUGES), (stored["booking"], live["booking"])),
            **dict.fromkeys(("idle", "held_since", "workload"), (stored, live)),
            "pod_uid": (stored["container"], live["container"]),
        }
        for field in ("state", "evidence", "since"):
            pairs[field] = (stored["holding"], live["holding"])
        for field, (have, want) in pairs.items():
            if have.get(field) != _nearly(want.get(field)):
                yield key, field, have.get(field), want.get(field)
    told = [_problems(each) for each in (shown, agents)]
    if told[0] != told[1]:
        yield "problems", *told
    energy = [[card["balance"]["energy_mj"] for card in each["cards"]] for each in (shown, agents)]
    if energy[0] != energy[1]:
        yield "energy", *energy


def test_agents_give_the_present_and_a_store_the_nodes_without_one_and_the_past(rig: Rig) -> None:
    origins = {"alpha": "agent", "beta": "store", "gamma": "store"}
    found = eventually(
        lambda: {name: node["origin"] for name, node in _nodes(rig, "both").items()}, lambda now: now == origins
    )
    assert found == origins
    url = rig.clusters["both"]
    assert [part["name"] for part in get(f"{url}/api/v1/cluster").json()["parts"]] == ["store"]
    for name in NODES:
        whole = get(f"{url}/api/v1/snapshot?node={name}").json()
        has_evidence = any(tenant["processes"] for card in whole["cards"] for tenant in card["tenants"])
        assert (whole["stored"], has_evidence) == (name != "alpha", name == "alpha")
    assert get(f"{url}/api/v1/history?pod=research/pretrain-0&hours=1").json().keys() == METRICS.keys()


def _problems(snapshot: Any) -> list[tuple[str, str]]:
    """Of context switches a store has the sum, and not those of the last reading; of XIDs not who was on the card."""
    problems = [problem for problem in snapshot["insight"]["problems"] if problem["kind"] != "switching"]
    return [(problem["kind"], re.sub(r" while \S+ was on it", "", problem["text"])) for problem in problems]


@pytest.mark.parametrize("origin", STORES)
def test_why_says_what_a_store_does_not_keep_and_denies_no_process(
    rig: Rig, origin: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def said() -> str:
        main(["why", "research/pretrain-0", f"--prometheus.url={rig.urls[origin]}"])
        return " ".join(capsys.readouterr().out.split())

    text = eventually(said, lambda text: text.count("This is read from a store.") == len(NODES))
    assert text.count("This is read from a store.") == len(NODES)
    assert "podgpu why research/pretrain-0 --url http://beta:19400" in text
    assert "no process" not in text.replace("and no processes, claims", "").lower()


@pytest.mark.parametrize(("origin", "state"), [("dcgm", "fresh"), ("api", "allocation")])
def test_without_agents_and_stores_it_is_known_who_has_a_whole_card(rig: Rig, origin: str, state: str) -> None:
    found = eventually(lambda: _nodes(rig, origin), lambda nodes: {node["state"] for node in nodes.values()} == {state})
    assert {name: (node["state"], node["origin"]) for name, node in found.items()} == dict.fromkeys(
        NODES, (state, origin)
    )
    for name, agent in rig.agents.items():
        expected = {_holder(card, tenant) for card, tenant in whole_cards(agent.snapshot())}
        held = {
            _holder(card, tenant)
            for card in found[name]["snapshot"]["cards"]
            for tenant in card["tenants"]
            if len(card["tenants"]) == 1
        }
        assert expected <= held
        assert len(expected) == 4


@pytest.mark.parametrize("origin", ["dcgm", "agents"])
def test_a_card_shows_the_same_by_its_page_as_by_its_agent(rig: Rig, origin: str) -> None:
    for name, agent in rig.agents.items():
        cards = {card["gpu"]["uuid"]: card for card in agent.snapshot()["cards"]}
        node = eventually(lambda name=name: _nodes(rig, origin)[name], lambda node: bool(node["snapshot"]))  # type: ignore[misc]
        shown = {card["gpu"]["uuid"]: card for card in node["snapshot"]["cards"]}
        assert shown.keys() == cards.keys()
        for uuid, card in shown.items():
            assert card["gpu"]["model"] == cards[uuid]["gpu"]["model"]
            if not cards[uuid]["gpu"]["mig_enabled"]:  # of a divided card a page has the instances alone
                total = [_reading(source, "memory_total_bytes") for source in (card, cards[uuid])]
                assert total[0] == pytest.approx(total[1], rel=0.01)


def _holder(card: Any, tenant: Any) -> tuple[str, ...]:
    ref = tenant["container"]
    return card["gpu"]["uuid"], ref["namespace"], ref["pod"], ref["container"]


def _reading(card: Any, metric: str) -> float:
    return float(next(reading["value"] for reading in card["readings"] if reading["metric"] == metric))


def _nearly(value: Any) -> Any:
    return pytest.approx(value, rel=1e-11) if isinstance(value, float) else value


def _printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("origin", STORES)
@pytest.mark.parametrize(
    ("command", "names"),
    [
        (["top", "--once"], ("namespace", "name", "held_gpus", "gpus")),
        (["top", "nodes", "--once"], ("name", "cards", "model", "memory_total_bytes")),
        (["idle", "--for=1h"], ("namespace", "pod", "node", "gpus", "held_gpus", "processes", "ever_used")),
    ],
)
def test_commands_print_the_same_from_a_store_as_from_the_agents(
    rig: Rig, origin: str, command: list[str], names: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    def rows(name: str) -> list[tuple[Any, ...]]:
        found = _printed(capsys, *command, f"--url={rig.clusters[name]}")["rows"]
        return sorted(tuple(str(row.get(each)) for each in names) for row in found)

    stored, present = eventually(lambda: (rows(origin), rows("agents")), lambda found: found[0] == found[1] != [])
    assert stored == present


@pytest.mark.parametrize("origin", STORES)
def test_a_report_is_the_difference_of_the_samples(rig: Rig, origin: str, capsys: pytest.CaptureFixture[str]) -> None:
    end = int(time.time()) - 2
    start = end - SECONDS
    url = rig.urls[origin]
    times = [time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) for at in (start, end)]
    jobs = [f"--prometheus.job={node}" for node in NODES]
    line = ("report", f"--prometheus.url={url}", f"--from={times[0]}", f"--to={times[1]}", "--by=pod", *jobs)
    asked = (BOOKED, TAKEN, *(metric for metric, _ in COUNTERS.values()))

    def kept() -> dict[str, list[Series]]:
        return {metric: rig.samples(origin, metric, end) for metric in asked}

    before, report, raw = eventually(
        lambda: (kept(), _printed(capsys, *line), kept()), lambda found: found[0] == found[2]
    )
    assert before == raw
    had = {row["pod"]: row for row in report["rows"] if row["row"] == "group"}
    for name, column in (
        ("energy_mj", "energy_joules"),
        ("busy_us", "busy_seconds"),
        ("allocated_us", "gpu_seconds"),
    ):
        metric, unit = COUNTERS[name]
        by_hand = _by_pod(raw[metric], start, unit)
        assert {pod: round(row[column] * unit) for pod, row in had.items()} == by_hand
    whole = sum(_difference(samples, start, 1e3) for _, samples in raw[BOOKED])
    assert round(report["total"]["energy_joules"] * 1e3) == whole
    assert report["gpus"] == 24
    elapsed = sum(_difference(samples, start, 1e6) for _, samples in raw[TAKEN]) / 1e6
    assert report["total"]["gpu_seconds"] == pytest.approx(8 * elapsed, abs=24 * 1.5)


# Points of an hour lie half a minute apart. Of these, VictoriaMetrics has none for the last half a minute, so it is
# asked for points that lie further apart.
@pytest.mark.parametrize(("origin", "hours"), [("prometheus", 1), ("victoria-metrics", 4)])
def test_the_past_of_a_pod_is_that_of_its_samples(rig: Rig, origin: str, hours: int) -> None:
    pod = "research/pretrain-0"  # the same on every node, so there are three of it
    namespace, _, name = pod.partition("/")

    def newest(quantity: str) -> tuple[float, Any]:
        """A point, and what the samples up to its time add up to."""
        found = get(f"{rig.clusters[origin]}/api/v1/history?pod={pod}&hours={hours}").json()[quantity]
        if not found:  # the store was empty until a moment ago
            return 0.0, -1.0
        at, value = found[-1]
        assert time.time() - at < 2 * LEAST_STEP
        samples = rig.samples(origin, f'{METRICS[quantity]}{{namespace="{namespace}",pod="{name}"}}', at)
        if len(samples) < len(NODES):  # a node was not scraped until then
            return 0.0, -1.0
        assert len(samples) == len(NODES)
        return value, pytest.approx(sum(each[-1][1] for _, each in samples))

    for quantity in METRICS:
        # A sample may come in between the two questions.
        value, by_hand = eventually(partial(newest, quantity), lambda pair: bool(pair[0] == pair[1]))
        assert value == by_hand, quantity


@pytest.mark.parametrize("origin", STORES)
def test_a_pod_that_a_store_does_not_know_has_no_past(rig: Rig, origin: str) -> None:
    url = rig.clusters[origin]
    assert get(f"{url}/api/v1/history?pod=research/nobody&hours=744").json() == {metric: [] for metric in METRICS}


def _by_pod(series: list[Series], start: float, unit: float) -> dict[str, int]:
    found: dict[str, int] = {}
    for labels, samples in series:
        found[labels["pod"]] = found.get(labels["pod"], 0) + _difference(samples, start, unit)
    return found


def _difference(samples: list[tuple[float, float]], start: float, unit: float) -> int:
    """The last sample until the end, less the last until the start."""
    before = [value for at, value in samples if at <= start]
    return round(samples[-1][1] * unit) - round(before[-1] * unit)


@pytest.mark.parametrize("name", [*STORES, "agents", "both"])
def test_every_surface_says_the_same_of_what_was_read(rig: Rig, name: str) -> None:
    whole = eventually(
        lambda: cluster_json.decode(get(f"{rig.clusters[name]}/api/v1/cluster").body),
        lambda found: len([node for node in found.nodes if node.snapshot]) == len(NODES),
    )
    snapshots = [node.snapshot for node in whole.nodes if node.snapshot]
    assert len(snapshots) == len(NODES)
    # A node's own document has the sentences that a cluster's leaves out.
    for held in (whole, *map(of_one, map(with_answers, snapshots))):
        assert [str(line) for line in compared(surfaces.all_of(held)) if line.differs] == []
