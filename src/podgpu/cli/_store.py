"""Reads the store of --prometheus.url, for a command that asks it once."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from podgpu.cluster.report.bill import fault_text
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.options import StoreOptions
from podgpu.cluster.store.response import StoreFault
from podgpu.config import Config
from podgpu.errors import UserError

T = TypeVar("T")


def ask_store(config: Config, ask: Callable[[Store], Coroutine[Any, Any, T]], *, whole: bool = True) -> T:
    """With `whole`, an answer from a part of the data is a fault. Raise UserError if the store does not answer."""

    async def asked() -> T:
        store = Store(config.of(StoreOptions), whole=whole)
        try:
            return await ask(store)
        except StoreFault as fault:
            raise UserError(fault_text(fault)) from None
        finally:
            await store.close()

    return asyncio.run(asked())
