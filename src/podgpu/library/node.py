"""The agent in a program of one's own."""

import asyncio
import os
import time
from collections.abc import Mapping
from typing import Self

from podgpu.assembly.agent import open_agent
from podgpu.config import OPTIONS, Config
from podgpu.config.precedence import load
from podgpu.errors import UserError
from podgpu.model import Snapshot
from podgpu.option.spelling import did_you_mean

# How long the start waits for parts that have not spoken yet.
PATIENCE_SECONDS = 10.0
GLANCE_SECONDS = 0.02


class Node:
    """The node that this process runs on, read once an interval within `async with Node(source="dcgm") as node`.

    Options are those of `podgpu agent`, `--dcgm.url` as `dcgm_url`, with values as text or as Python has them.
    They win over the environment, which wins over the file, as flags do. Raises UserError for what cannot be.
    """

    def __init__(self, config: Config | None = None, /, **options: object) -> None:
        if config is not None and options:
            raise TypeError("give a Config or options, not both")
        self.config = _configured(options) if config is None else config
        self._agent = open_agent(self.config)
        self._loop: asyncio.Task[None] | None = None

    @property
    def ready(self) -> bool:
        """Whether the first attempt to read the node is over, whatever it found."""
        return self._agent.ready

    @property
    def snapshot(self) -> Snapshot:
        """Return what is known now, never older than three intervals: the same object until there is a newer one.

        A part that fails is no exception. It is down in `parts`, with its reason.
        """
        return self._agent.snapshot

    async def changed(self, seen: Snapshot) -> Snapshot:
        """Wait until there is a newer snapshot than that, and return it."""
        return await self._agent.changed(seen)

    async def release(self, seconds: float) -> bool:
        """Let go of the driver for that long, as for its upgrade. True once nothing of it is held any more."""
        return await self._agent.release(seconds)

    async def __aenter__(self) -> Self:
        """Wait until every part has spoken, ten seconds at most."""
        if self._loop is not None:
            raise RuntimeError("a Node runs once; make another one")
        self._loop = asyncio.create_task(self._agent.run())
        try:
            await self._first_snapshot(self._loop)
        except BaseException:
            await self._stop(self._loop)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._loop is not None:
            await self._stop(self._loop)

    async def _first_snapshot(self, loop: asyncio.Task[None]) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while _is_starting(self.snapshot) and time.monotonic() < until:
            done, _ = await asyncio.wait({loop}, timeout=GLANCE_SECONDS)
            if done:
                loop.result()

    async def _stop(self, loop: asyncio.Task[None]) -> None:
        loop.cancel()
        await asyncio.wait({loop})
        await self._agent.close()


def _is_starting(snapshot: Snapshot) -> bool:
    return any(part.fault and part.fault.reason == "starting" for part in snapshot.parts)


def _configured(options: Mapping[str, object]) -> Config:
    for name in options:
        if name not in OPTIONS:
            advice = did_you_mean(name, OPTIONS, "docs/configuration.md lists the options")
            raise UserError(f"unknown option {name!r}; {advice}")
    return load({name: _texts(value) for name, value in options.items() if value is not None}, os.environ)


def _texts(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)]
