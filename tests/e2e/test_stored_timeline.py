"""The timeline of days, from a real Prometheus and a real VictoriaMetrics, against a past that was made up."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from podgpu.assembly.server import stored_timeline
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.options import StoreOptions
from podgpu.cluster.store.pod_history import StoreHistory
from tests.e2e import prometheus, victoria
from tests.e2e.stores import STORES, keeping

pytestmark = pytest.mark.skipif(
    prometheus.PROGRAM is None or victoria.PROGRAM is None,
    reason="prometheus or victoria-metrics is not installed",
)

HOUR, MINUTE = 3600, 60


def past(now: int) -> Iterator[str]:
    """A day with two GPUs: one is half busy, then wholly; the other is read for half of the day.

    Two jobs scrape them, one of them without honor_labels.
    """
    kept = 'namespace="ml",pod="train",container="main"', 'node="a"'
    moved = (
        'namespace="podgpu",pod="podgpu-x",exported_namespace="ml",exported_pod="train",container="main"',
        'node="rack-7",exported_node="a"',
    )
    busy = 0
    for at in range(now - 24 * HOUR, now + 1, MINUTE):
        is_early = at < now - 12 * HOUR
        busy += 30 if is_early else 60
        for own, node in (kept, moved):
            common = f'{node},job="{len(own)}"'
            for name, labels, value in (
                ("podgpu_gpu_up", "", 1),
                ("podgpu_gpu_booked_busy_seconds_total", "", busy),
                ("podgpu_container_busy_seconds_total", f",{own}", busy),
            ):
                yield f'{name}{{{common},gpu="0"{labels}}} {value} {at}000'
            yield f'podgpu_gpu_up{{{common},gpu="1"}} {int(is_early)} {at}000'


@pytest.mark.parametrize("kind", STORES)
async def test_a_day_and_a_week_are_what_was_kept(kind: str, tmp_path: Path) -> None:
    now = int(time.time())
    with keeping(kind, list(past(now)), tmp_path) as url:
        history = StoreHistory(Store(StoreOptions(url=url)))
        day, week = await stored_timeline(history, 24), await stored_timeline(history, 7 * 24)
        await history.close()
    for shown in (day, week):
        assert shown["namespaces"] == ["ml"] and shown["to"] >= now
        # Around the hours at which something changes, a step is partly the one and partly the other.
        for first, last, busy, seen in ((23, 14, 0.5, 2), (11, 2, 1.0, 1)):
            steps = [step for step in shown["steps"] if now - first * HOUR < step["at"] < now - last * HOUR]
            assert len(steps) >= 8 * HOUR / shown["step"]
            for step in steps:
                assert (step["gpus"], step["seen_gpus"]) == (2, seen)
                assert step["busy_gpus"] == pytest.approx(busy, rel=0.03)
                assert step["namespaces"] == {"ml": pytest.approx(busy, rel=0.03)}
    unseen = [step for step in week["steps"] if step["at"] < now - 26 * HOUR]
    assert len(unseen) > 100 and not any("seen_gpus" in step for step in unseen)
