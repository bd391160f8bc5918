from dataclasses import dataclass

from podgpu.option import SOURCE
from podgpu.option.value import whole


@dataclass(frozen=True, kw_only=True)
class SimulatorOptions:
    seed: int = SOURCE.single(
        "--simulator.seed",
        help="The same seed gives the same simulated numbers.",
        parse=whole(0, 2**32 - 1),
        default="1",
    )
