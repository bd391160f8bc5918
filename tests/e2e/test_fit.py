"""`podgpu fit` over a day in a real Prometheus and a real VictoriaMetrics, against the workloads that were made up."""

import asyncio
import json
import time
from collections.abc import Iterator
from random import Random

import pytest

from podgpu.cli.main import main
from podgpu.cluster.fit.stored import StoredUse, stored_use
from podgpu.cluster.report.queries import TimeWindow
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.options import StoreOptions
from podgpu.model.fit import INSTANCE, PORTION, FitTerms, WorkloadName, WorkloadUse
from tests.e2e import prometheus, victoria
from tests.insight.fit.planted import (
    DAY,
    Planted,
    Planter,
    fine,
    half_unseen,
    idle,
    out_of_memory,
    oversized,
    portion,
    throttled,
)
from tests.insight.fit.weeks import advice

pytestmark = pytest.mark.skipif(
    prometheus.PROGRAM is None or victoria.PROGRAM is None,
    reason="prometheus or victoria-metrics is not installed",
)

MINUTES = DAY + 60
FAMILIES = (idle, oversized, portion, throttled, out_of_memory, fine, half_unseen)


class StoredPast:
    """The samples of one workload of each family, once a minute."""

    def __init__(self) -> None:
        self.start = int(time.time()) // 60 * 60 - (MINUTES + 10) * 60
        planter = Planter(Random(30))
        self.workloads: list[Planted] = [make(planter) for make in FAMILIES]
        self.lines = [line for each in self.workloads for line in self._lines(each)]

    @property
    def end(self) -> int:
        return self.start + MINUTES * 60

    def use(self, name: WorkloadName) -> WorkloadUse:
        [found] = (each for each in self.workloads if each.use.workload == name)
        use = found.window(0, MINUTES)
        assert use
        return use

    def _lines(self, planted: Planted) -> Iterator[str]:
        use, series = planted.use, planted.use.series
        node, pod = use.nodes[0], f"{use.workload.name}-0"
        card = f'node="{node}",gpu="0",uuid="GPU-{pod}",job="podgpu"'
        mig = f"MIG-{pod}" if use.held.kind == INSTANCE else ""
        own = f'{card},mig="{mig}",namespace="{use.workload.namespace}",pod="{pod}",container="main"'
        yield from self._facts(use, card, own, pod, mig)
        most = least = 0.0
        yield from self._bounds(own, 0, most, least)
        for minute in range(MINUTES):
            if series.most[minute] < 0:
                if series.most[minute + 1] >= 0:
                    yield from self._bounds(own, minute + 1, most, least)
                continue
            stamp = (self.start + (minute + 1) * 60) * 1000
            most, least = most + series.most[minute] * 60, least + series.least[minute] * 60
            for info_stamp in (stamp - 30_000, stamp):
                yield f'podgpu_gpu_info{{{card},model="{use.card.model}"}} 1 {info_stamp}'
            yield f"podgpu_container_memory_used_bytes{{{own}}} {series.memory[minute]} {stamp}"
            yield from self._bounds(own, minute + 1, most, least)

    def _facts(self, use: WorkloadUse, card: str, own: str, pod: str, mig: str) -> Iterator[str]:
        stamp = (self.start + (MINUTES - 5) * 60) * 1000
        name, namespace = use.workload, f'namespace="{use.workload.namespace}"'
        yield f"podgpu_container_allocated_ratio{{{own}}} {use.held.ratio} {stamp}"
        yield f"podgpu_gpu_memory_total_bytes{{{card}}} {use.card.memory_bytes} {stamp}"
        owner = f'workload_kind="{name.kind}",workload_name="{name.name}"'
        yield f'podgpu_pod_info{{node="{use.nodes[0]}",{namespace},pod="{pod}",{owner}}} 1 {stamp}'
        if use.held.kind == PORTION:
            yield f"podgpu_container_memory_limit_bytes{{{own}}} {use.held.memory_limit_bytes} {stamp}"
            asked = f'{namespace},pod="{pod}",container="main",resource="nvidia_com_gpumem",unit="integer"'
            yield f"kube_pod_container_resource_limits{{{asked}}} 1000 {stamp}"
        if mig:
            labels = f'{card},mig="{mig}",profile="{use.held.profile}"'
            yield f"podgpu_mig_memory_total_bytes{{{labels}}} {use.held.memory_limit_bytes} {stamp}"

    def _bounds(self, own: str, minute: int, most: float, least: float) -> Iterator[str]:
        stamp = (self.start + minute * 60) * 1000
        for bound, value in (("most", most), ("least", least)):
            yield f'podgpu_container_busy_bound_seconds_total{{{own},bound="{bound}"}} {value!r} {stamp}'


@pytest.fixture(scope="module")
def past() -> StoredPast:
    return StoredPast()


@pytest.fixture(scope="module", params=["prometheus", "victoria-metrics"])
def store(
    request: pytest.FixtureRequest, past: StoredPast, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("store")
    if request.param == "victoria-metrics":
        with victoria.victoria(folder) as url:
            victoria.keep(url, "\n".join([*past.lines, ""]))
            yield url
    else:
        prometheus.keep(past.lines, folder)
        configuration = folder / "prometheus.yml"
        configuration.write_text("{}")
        with prometheus.started(configuration, folder) as here:
            yield here.url


@pytest.fixture(scope="module")
def read(store: str, past: StoredPast) -> StoredUse:
    async def ask() -> StoredUse:
        client = Store(StoreOptions(url=store), whole=True)
        try:
            return await stored_use(client, TimeWindow(past.start, past.end))
        finally:
            await client.close()

    return asyncio.run(ask())


def test_the_evidence_is_what_was_made_up(read: StoredUse, past: StoredPast) -> None:
    assert {use.workload for use in read.uses} == {each.use.workload for each in past.workloads}
    for use in read.uses:
        made = past.use(use.workload)
        assert use.series.memory == made.series.memory, use.workload
        assert use.series.most == pytest.approx(made.series.most, abs=1e-4), use.workload
        assert use.series.least == pytest.approx(made.series.least, abs=1e-4), use.workload
        assert (use.card, use.replicas, use.nodes) == (made.card, made.replicas, made.nodes)
        assert (use.held.kind, use.held.profile) == (made.held.kind, made.held.profile)
        assert use.held.memory_limit_bytes == made.held.memory_limit_bytes
        assert use.watched_seconds == pytest.approx(made.watched_seconds, abs=600)
        assert use.seen_ratio == pytest.approx(made.seen_ratio, abs=0.01)


def test_the_command_says_what_the_rules_say(
    store: str, past: StoredPast, capsys: pytest.CaptureFixture[str]
) -> None:
    times = [time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) for at in (past.start, past.end)]
    arguments = [f"--prometheus.url={store}", f"--from={times[0]}", f"--to={times[1]}", "-o", "json"]
    assert main(["fit", *arguments, "--release-after=1d"]) == 0
    found = json.loads(capsys.readouterr().out)
    right = advice(past.workloads, 0, MINUTES, FitTerms(release_seconds=DAY * 60.0))
    assert {row["workload_name"]: (row["advice"], row["to"]) for row in found["rows"]} == {
        name.name: (row.kind, row.to) for name, row in right.items()
    }
    [part] = (row for row in found["rows"] if row["workload_name"].startswith("portion"))
    assert part["change"].startswith("nvidia.com/gpumem: ")
