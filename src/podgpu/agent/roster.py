"""Who is on the node, by the best list of pods there is."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from podgpu import log
from podgpu.kube import PodSource
from podgpu.model import Pod

CRASH_SECONDS = 30.0  # until a source that broke is tried again


class Roster:
    """`sources` come best first."""

    def __init__(self, sources: Sequence[PodSource]) -> None:
        self.sources = tuple(sources)

    async def run(self) -> None:
        """Keep the lists fresh until cancelled."""
        async with asyncio.TaskGroup() as group:
            for source in self.sources:
                group.create_task(kept_going(source))

    def pods(self) -> tuple[Pod, ...]:
        """Take the list of a source that works, else of one that did.

        A list of bare names, as log folders give, is filled up with what a better source told last: that a pod has
        ended, and what it was made for, is still true.
        """
        working = [source for source in self.sources if source.status().up]
        lists = [pods for source in (*working, *self.sources) if (pods := source.pods()) is not None]
        if not lists:
            return ()
        best = lists[0]
        return best if all(pod.phase for pod in best) else _filled(best, lists[1:])


class Running(Protocol):
    """A part that keeps itself fresh."""

    name: str

    async def run(self) -> None: ...
    @property
    def errors(self) -> Counter[str]: ...


async def kept_going(source: Running) -> None:
    """A part that breaks is a bug; it shall not take the agent down with it."""
    while True:
        try:
            return await source.run()
        except Exception as error:
            source.errors["crashed"] += 1
            log.error("a source broke", source=source.name, error=repr(error))
            await asyncio.sleep(CRASH_SECONDS)


def _filled(bare: tuple[Pod, ...], others: Sequence[tuple[Pod, ...]]) -> tuple[Pod, ...]:
    told = {pod.uid: pod for pods in reversed(others) for pod in pods if pod.phase}
    names = {(pod.namespace, pod.name) for pod in bare}
    filled = [pod if pod.phase else told.get(pod.uid, pod) for pod in bare]
    # A pod that ran, and is not on the list that works, may be gone.
    ended = (pod for pod in told.values() if pod.finished and (pod.namespace, pod.name) not in names)
    return (*filled, *ended)
