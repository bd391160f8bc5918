"""A made-up node for the demo: eight cards that move plausibly and never by chance, and who is on them."""

from dataclasses import dataclass

from podgpu.option import SOURCE, Option, one
from podgpu.option.value import whole
from podgpu.sources import Site, Source
from podgpu.sources.tenants import Tenants

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


def tenants(kubelet: str, pods_api: str, procfs: str) -> Tenants:
    from podgpu.sources.simulator.kubernetes import DemoKubelet, DemoPods, DemoProcesses

    pods = DemoPods(pods_api)
    return Tenants(
        allocations=DemoKubelet(kubelet), pods=pods, processes=DemoProcesses(procfs), workloads=pods
    )
