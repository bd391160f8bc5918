"""`python -m tests.agent.model_table [SEEDS]`: how far off made-up tenants are booked, by samples and with checks.

Each row is a second tenant beside one that is always at work, four minutes for each seed; the last two minutes count.
Errors and widths are in hundredths of the card's time. Takes about a minute for each seed.
"""

import sys
from random import Random

from tests.agent.minutes_of_model import TenantMinute, minutes
from tests.tenant_model import MILLI, SECOND, ModelTenant, run

SECONDS = 240
FIRST_MINUTE = 3


def paced(rate: int, work: int) -> ModelTenant:
    return ModelTenant(work * MILLI, SECOND // rate, paced=True)


def bursts(work: int, rest: int, jitter: float = 0.5) -> ModelTenant:
    return ModelTenant(work * MILLI, rest * MILLI, jitter=jitter)


TENANTS = {
    "25 fps, 8 ms": paced(25, 8),
    "30 fps, 10 ms": paced(30, 10),
    "10 fps, 20 ms": paced(10, 20),
    "5 fps, 60 ms": paced(5, 60),
    "rests around each sample": ModelTenant(2 * MILLI, hides=True),
    "bursts 50/90 ms": bursts(50, 90),
    "bursts 113/91 ms": bursts(113, 91, 0.02),
    "bursts 2/3 s": bursts(2000, 3000),
    "bursts 10/10 s": bursts(10_000, 10_000),
}


def judged(tenant: ModelTenant, switches: str, seeds: int) -> list[TenantMinute]:
    found: list[TenantMinute] = []
    for seed in range(seeds):
        chance = Random(seed)
        made = run((ModelTenant(2 * MILLI), tenant), SECONDS, chance)
        found += [each for each in minutes(made, switches=switches, chance=chance) if each.minute >= FIRST_MINUTE]
    return [each for each in found if each.tenant == 1]


def line(found: list[TenantMinute]) -> str:
    off = [abs(each.points) for each in found]
    width = sum(each.band.likely_most_us - each.band.likely_least_us for each in found) / len(found) / 600_000
    inside = sum(each.is_likely for each in found)
    broken = sum(not each.is_within_bounds for each in found)
    figures = f"off {sum(off) / len(off):4.1f}, at most {max(off):4.1f}; likely range {width:4.1f} wide, holds"
    return f"{figures} {inside} of {len(found)}; {broken} bounds broken"


def main(seeds: int) -> None:
    for name, tenant in TENANTS.items():
        for switches in ("off", "check"):
            print(f"{name:<25} {switches:<6} {line(judged(tenant, switches, seeds))}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
