"""The units that devices and other systems use.

A ceiling is far above what cards will report in the next years, and far below the all-ones patterns that drivers return
for unknown values.
"""

from msgspec import Struct


class Unit(Struct, frozen=True):
    """A unit outside podgpu. A value times `factor` is in the base unit, and between `floor` and `ceiling` there.

    `words` are what dcgm-exporter says of it in a HELP.
    """

    symbol: str
    factor: float = 1.0
    ceiling: float = 2.0**63
    floor: float = 0.0
    words: str = ""

    def base(self, value: float) -> float:
        """Dividing by 1000 is exact where multiplying by 0.001 is not: 1234 mJ is 1.234 J to the last digit."""
        return value * self.factor if self.factor >= 1 else value / round(1 / self.factor)


_COUNT_CEILING = 2.0**62
_SIZE_CEILING = 2.0**50
_RATE_CEILING = 2.0**50
_TIME_CEILING = 1e10
_ENERGY_CEILING = 1e15

COUNT = Unit("", ceiling=_COUNT_CEILING)
FLAG = Unit("", ceiling=1.0)
RATIO = Unit("ratio", ceiling=1.0, words="0 to 1")
PERCENT = Unit("%", 0.01, 1.0, words="in %")
# The quotient of two counters that are not read at the same instant, so a busy card may show 100.3 %.
PROFILED_PERCENT = Unit("%", 0.01, 1.01)
# 100 % is full speed, but NVML documents that a fan may turn faster.
FAN_PERCENT = Unit("%", 0.01, 2.0, words="in %")

BYTES = Unit("B", ceiling=2.0**62, words="in bytes")
KIB = Unit("KiB", 2.0**10, 2.0**62)
MIB = Unit("MiB", 2.0**20, _SIZE_CEILING, words="in MiB")
# Bytes of memory. BYTES is for those that have crossed a link since boot.
MEMORY_BYTES = Unit("B", ceiling=_SIZE_CEILING)

BYTES_PER_SECOND = Unit("B/s", ceiling=_RATE_CEILING)
KILOBYTES_PER_SECOND = Unit("kB/s", 1e3, _RATE_CEILING)
MEGABYTES_PER_SECOND = Unit("MB/s", 1e6, _RATE_CEILING)
MIB_PER_SECOND = Unit("MiB/s", 2.0**20, _RATE_CEILING)

MILLIWATTS = Unit("mW", 1e-3, 1e5)
WATTS = Unit("W", ceiling=1e5, words="in W")
MILLIJOULES = Unit("mJ", 1e-3, _ENERGY_CEILING, words="in mJ")
JOULES = Unit("J", ceiling=_ENERGY_CEILING, words="in J")
CELSIUS = Unit("°C", ceiling=250.0, floor=-273.15, words="in C")
MEGAHERTZ = Unit("MHz", 1e6, 1e11, words="in MHz")
HERTZ = Unit("Hz", ceiling=1e11, words="in Hz")

SECONDS = Unit("s", ceiling=_TIME_CEILING, words="in s")
NANOSECONDS = Unit("ns", 1e-9, _TIME_CEILING, words="in ns")

# The driver reports 32 for unknown.
PERFORMANCE_STATE = Unit("", ceiling=15.0)
COMPUTE_MODE = Unit("", ceiling=3.0)
LINK_GENERATION = Unit("", ceiling=32.0)
LINK_WIDTH = Unit("", ceiling=64.0)
