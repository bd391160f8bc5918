"""Prints a line for each fact: how many surfaces show it, and whether they differ."""

import asyncio
import sys

from tests.agreement.cases import held_still, names
from tests.agreement.compare import lines_of
from tests.agreement.rig import PLAYS
from tests.browser.chromium import browser


async def main(wanted: list[str]) -> int:
    differing = total = 0
    async with browser() as chromium:
        async for name, cluster in held_still(wanted or [*names(), *PLAYS]):
            print(f"== {name}")
            for line in await lines_of(cluster, chromium):
                total += 1
                differing += line.differs
                print(line)
    print(f"{total} facts, {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
