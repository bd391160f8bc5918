"""The driver, read through NVML.

All calls happen in the sampler, a child process of the agent. A hung call, a lost GPU or a crash in the driver's
library affects that process only, and the pages stay up.

    source   the source as the agent sees it: starts and supervises the child process
    child    the child process, called the sampler: answers the agent's requests in time
    session  the library: opened once per process; lists the GPUs and receives XIDs
    reader   reads a GPU: facts, readings, instances and processes
    handle   an NVML handle: counts failures, remembers refused calls
    plan     groups the catalog's rows into as few calls as possible
    gpm      profiling counters, and how busy a card is in each tenth of a second
    window_split  splits the driver's windows by these tenths
    process  the processes on a card and their utilization
    mig      MIG instances
    failure  NVML's return codes as reasons
"""

from typing import TYPE_CHECKING

from msgspec import Struct

from podgpu.sources.protocols import Site, Source, SourceEntry

if TYPE_CHECKING:
    from podgpu.sources.nvml.options import NvmlOptions

NAME = "nvml"


class ReadRequest(Struct, frozen=True):
    """Read all GPUs and answer with a Report within `seconds`, even if some have not answered.

    For the cards in `windows`, also read the busy time of each of the driver's windows. Until the next request, take
    ten busy samples a second of those in `sampled`, to split their windows into halves. A `brief` reading leaves out
    what takes long: slow values, and profiling counters, of which it only takes the first of two samples.
    """

    seconds: float
    windows: tuple[str, ...] = ()
    sampled: tuple[str, ...] = ()
    brief: bool = False


def _open(options: "NvmlOptions", site: Site) -> Source:
    from podgpu.sources.nvml.source import NvmlSource

    library = str(options.library) if options.library else None
    return NvmlSource(interval=site.interval, library=library, watched=site.watched)


# It borrows because NVML has no profiling counters for cards older than Hopper.
SOURCE = SourceEntry(name=NAME, help="the driver", open=_open, is_default=True, borrows_profiling=True)
