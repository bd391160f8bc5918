from dataclasses import dataclass

from podgpu.option import SOURCE, single
from podgpu.option.value import whole


@dataclass(frozen=True, kw_only=True)
class SimulatorOptions:
    seed: int = single(
        "--simulator.seed",
        group=SOURCE,
        help="The same seed gives the same simulated numbers.",
        parse=whole(0, 2**32 - 1),
        default="1",
    )
