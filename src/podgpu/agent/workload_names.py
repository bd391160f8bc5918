"""What pods were made for, asked in the background: a slow API server must not hold up the numbers."""

import asyncio
from collections.abc import Mapping, Sequence

from podgpu.model import Fault, PartStatus, Pod, Workload
from podgpu.model.ports import WorkloadSource
from podgpu.supervise import brief

SECONDS = 0.2  # how long a cycle waits; the rest comes with the next


class WorkloadNames:
    """Remembers the last answer, which counts until the next one comes. `status` is there after a failure."""

    def __init__(self, workloads: WorkloadSource, patience: float) -> None:
        self.status: PartStatus | None = None
        self._workloads = workloads
        self._patience = min(SECONDS, patience)
        self._known: Mapping[str, Workload] = {}
        self._asking: asyncio.Task[dict[str, Workload]] | None = None

    async def of(self, pods: Sequence[Pod]) -> Mapping[str, Workload]:
        """Return workloads by the UID of the pod."""
        if self._asking is None or self._asking.done():
            self._asking = brief(self._workloads.resolve(pods))
        done, _ = await asyncio.wait({self._asking}, timeout=self._patience)
        error = self._asking.exception() if done else None
        self.status = _broken(self._workloads.name, error) if error else None
        if done and not error:
            self._known = self._asking.result()
        return self._known

    async def close(self) -> None:
        if self._asking:
            self._asking.cancel()
            await asyncio.wait({self._asking})


def _broken(name: str, error: BaseException) -> PartStatus:
    return PartStatus(name=name, up=False, fault=Fault(reason="attribution_error", detail=repr(error)))
