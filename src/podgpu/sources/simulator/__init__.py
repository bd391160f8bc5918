"""A made-up node for the demo: eight cards, and pods and processes on them. The same seed gives the same numbers."""

from dataclasses import dataclass

from podgpu.option import SOURCE, Option, one
from podgpu.option.value import whole
from podgpu.sources import Site, Source
from podgpu.sources.residents import Residents

NAME = "simulator"
HELP = "made up"
IS_DEMO = True


@dataclass(frozen=True, kw_only=True)
class Options:
    seed: int = one(
        Option(
            flag="--simulator.seed",
            group=SOURCE,
            help="The same seed gives the same simulated numbers.",
            parse=whole(0, 2**32 - 1),
            value_name="NUMBER",
            default="1",
        )
    )


def open(options: Options, _: Site) -> Source:  # noqa: A001 - read as simulator.open
    from podgpu.sources.simulator.source import Simulator

    return Simulator(seed=options.seed)


def residents() -> Residents:
    from podgpu.sources.simulator.kubernetes import DemoKubelet, DemoPods, DemoProcesses

    pods = DemoPods()
    return Residents(allocations=DemoKubelet(), pods=pods, processes=DemoProcesses(), workloads=pods)
