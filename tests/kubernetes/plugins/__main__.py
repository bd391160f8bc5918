"""Runs the made-up device plugin and DRA driver: python -m tests.kubernetes.plugins nvidia.com/gpu=GPU-1,GPU-2"""

import asyncio
import sys
from collections.abc import Sequence

from tests.kubernetes.plugins import device_plugin, dra_driver


async def main(words: Sequence[str]) -> None:
    offers = (word.partition("=") for word in words)
    await dra_driver.offer()
    await asyncio.gather(*(device_plugin.keep_offering(resource, ids.split(",")) for resource, _, ids in offers))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
