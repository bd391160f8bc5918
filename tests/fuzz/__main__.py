"""Runs every target for its part of so many seconds of CPU time: `python -m tests.fuzz [SECONDS [SEED]]`."""

import asyncio
import sys
import time
import traceback
from random import Random, SystemRandom

from tests.fuzz.targets import TARGETS, Target

SECONDS = 600.0
MOST_ESCAPES = 10


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    first = int(sys.argv[2]) if len(sys.argv) > 2 else SystemRandom().randrange(1 << 32)
    escapes = 0
    for name, target in TARGETS.items():
        inputs, found = _tried(name, target, first, seconds / len(TARGETS))
        print(f"{name}: {inputs} inputs from seed {first}, {found} escapes", flush=True)
        escapes += found
    return 1 if escapes else 0


def _tried(name: str, target: Target, seed: int, seconds: float) -> tuple[int, int]:
    ends, inputs, escapes = time.process_time() + seconds, 0, 0
    with asyncio.Runner() as runner:
        while time.process_time() < ends and escapes < MOST_ESCAPES:
            try:
                runner.run(_once(target, Random(seed + inputs)))
            except Exception:
                escapes += 1
                print(f"{name}: seed {seed + inputs} escapes", file=sys.stderr)
                traceback.print_exc(limit=-4)
            inputs += 1
    return inputs, escapes


async def _once(target: Target, random: Random) -> None:
    await target(random)


if __name__ == "__main__":
    raise SystemExit(main())
