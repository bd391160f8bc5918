"""Workloads as podgpu would have shown them in a store."""

import time
from collections.abc import Iterator, Sequence

from podgpu.model.fit import INSTANCE, PORTION, WorkloadName, WorkloadUse
from tests.e2e.past import DAY
from tests.insight.fit.planted import Planted

IDLE_WATTS = 75


class StoredPast:
    """The samples of some workloads: so many, at steps of so many seconds.

    They begin on midnight UTC whenever a test runs, where stores divide their series, and end before now.
    """

    def __init__(self, workloads: Sequence[Planted], steps: int, step: int = 60) -> None:
        self.steps, self.step = steps, step
        days = -(-steps * step // DAY)
        self.start = (int(time.time()) // DAY - days) * DAY
        self.end = self.start + steps * step
        self.workloads = workloads
        self.lines = [line for each in self.workloads for line in self._lines(each)]

    def use(self, name: WorkloadName) -> WorkloadUse:
        [found] = (each for each in self.workloads if each.use.workload == name)
        use = found.window(0, self.steps)
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
        yield from self._busy(own, 0, most, least)
        for minute in range(self.steps):
            if series.most[minute] < 0:
                if series.most[minute + 1] >= 0:
                    yield from self._busy(own, minute + 1, most, least)
                continue
            stamp = (self.start + (minute + 1) * self.step) * 1000
            most, least = most + series.most[minute] * self.step, least + series.least[minute] * self.step
            for info_stamp in (stamp - self.step * 500, stamp):
                yield f'podgpu_gpu_info{{{card},model="{use.card.model}"}} 1 {info_stamp}'
            yield f"podgpu_container_memory_used_bytes{{{own}}} {series.memory[minute]} {stamp}"
            yield from self._busy(own, minute + 1, most, least)

    def _facts(self, use: WorkloadUse, card: str, own: str, pod: str, mig: str) -> Iterator[str]:
        stamp = (self.end - 300) * 1000
        name, namespace = use.workload, f'namespace="{use.workload.namespace}"'
        yield f"podgpu_container_allocated_ratio{{{own}}} {use.held.ratio} {stamp}"
        yield f"podgpu_gpu_memory_total_bytes{{{card}}} {use.card.memory_bytes} {stamp}"
        for later, watts in ((0, IDLE_WATTS), (60_000, 5 * IDLE_WATTS)):
            yield f"podgpu_gpu_power_watts{{{card}}} {watts} {stamp + later}"
        owner = f'workload_kind="{name.kind}",workload_name="{name.name}"'
        yield f'podgpu_pod_info{{node="{use.nodes[0]}",{namespace},pod="{pod}",{owner},job="podgpu"}} 1 {stamp}'
        if use.held.kind == PORTION:
            yield f"podgpu_container_memory_limit_bytes{{{own}}} {use.held.memory_limit_bytes} {stamp}"
            asked = f'{namespace},pod="{pod}",container="main",resource="nvidia_com_gpumem",unit="integer"'
            yield f"kube_pod_container_resource_limits{{{asked}}} 1000 {stamp}"
        if mig:
            labels = f'{card},mig="{mig}",profile="{use.held.profile}"'
            yield f"podgpu_mig_memory_total_bytes{{{labels}}} {use.held.memory_limit_bytes} {stamp}"

    def _busy(self, own: str, minute: int, most: float, least: float) -> Iterator[str]:
        """Its likely range and, as on a card that samples divide, bounds that say nothing."""
        stamp = (self.start + minute * self.step) * 1000
        for end, value in (("most", most), ("least", least)):
            yield f'podgpu_container_busy_likely_seconds_total{{{own},end="{end}"}} {value!r} {stamp}'
        for bound, value in (("most", float(minute * self.step)), ("least", 0.0)):
            yield f'podgpu_container_busy_bound_seconds_total{{{own},bound="{bound}"}} {value!r} {stamp}'
