"""A made-up node for the demo: eight cards, and pods and processes on them. The same seed gives the same numbers."""

from typing import TYPE_CHECKING

from podgpu.model.ports import NodeSources
from podgpu.sources.protocols import Site, Source

if TYPE_CHECKING:
    from podgpu.sources.simulator.options import SimulatorOptions

NAME = "simulator"
HELP = "made up"
IS_DEMO = True


def open(options: "SimulatorOptions", _: Site) -> Source:  # noqa: A001 - read as simulator.open
    from podgpu.sources.simulator.source import Simulator

    return Simulator(seed=options.seed)


def node_sources() -> NodeSources:
    from podgpu.sources.simulator.context_switches import DemoSwitches
    from podgpu.sources.simulator.kubernetes import DemoKubelet, DemoPods, DemoProcesses

    pods = DemoPods()
    return NodeSources(
        allocations=DemoKubelet(),
        pods=pods,
        processes=DemoProcesses(),
        workloads=pods,
        switches=DemoSwitches(),
    )
