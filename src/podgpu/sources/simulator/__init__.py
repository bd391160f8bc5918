"""A made-up node for the demo: eight cards, and pods and processes on them. The same seed gives the same numbers."""

from typing import TYPE_CHECKING

from podgpu.model.ports import NodeSources
from podgpu.sources.protocols import Site, Source, SourceEntry

if TYPE_CHECKING:
    from podgpu.sources.simulator.options import SimulatorOptions

NAME = "simulator"


def _open(options: "SimulatorOptions", _: Site) -> Source:
    from podgpu.sources.simulator.source import Simulator

    return Simulator(seed=options.seed)


def _node_sources() -> NodeSources:
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


SOURCE = SourceEntry(name=NAME, help="made up", open=_open, node_sources=_node_sources, is_demo=True)
