"""How long work rests, by a clock that the test moves."""

from types import SimpleNamespace

import pytest

from podgpu.kube import throttle
from podgpu.kube.throttle import CpuThrottle


class Clock:
    """Slices have 10 seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        monkeypatch.setattr(throttle, "SLICE_SECONDS", 10.0)
        monkeypatch.setattr(throttle, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(throttle, "asyncio", SimpleNamespace(sleep=self._sleep))

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def work(self, limited: CpuThrottle, seconds: float) -> None:
        async with limited.work():
            self.now += seconds


async def test_work_rests_for_as_long_as_it_took_once_a_slice_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, limited = Clock(monkeypatch), CpuThrottle()
    await clock.work(limited, 5.0)
    assert clock.slept == []
    await clock.work(limited, 5.0)
    assert clock.slept == [10.0]
    await clock.work(limited, 5.0)
    assert clock.slept == [10.0]
    await clock.work(limited, 30.0)
    assert clock.slept == [10.0, 35.0]
