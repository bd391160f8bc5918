"""The driver, read through NVML.

All calls happen in the sampler, a child process of the agent. A hung call, a lost GPU or a crash in the driver's
library affects that process only, and the pages stay up.

    sampler  the source as the agent sees it: starts and supervises the child process
    child    the child process: answers the agent's requests in time
    session  the library: opened once per process; lists the GPUs
    worker   a thread that makes NVML calls and shows which call it is in
    reader   reads a GPU: facts, readings, instances and processes
    handle   an NVML handle: counts failures, remembers refused calls
    plan     groups the catalog's rows into as few calls as possible
    gpm      profiling counters, and how busy a card is in each tenth of a second
    process  the processes on a card and their utilisation
    process_list_v1  the lists of processes of drivers before R460
    mig      MIG instances
    event    XIDs
    failure  NVML's return codes as reasons
    wire     the messages between the agent and the sampler
"""

from typing import TYPE_CHECKING

from podgpu.sources import Site, Source

if TYPE_CHECKING:
    from podgpu.sources.nvml.options import Options

NAME = "nvml"
HELP = "the driver"
IS_DEFAULT = True
BORROWS_PROFILING = True  # NVML has no profiling counters for cards older than Hopper


def open(options: "Options", site: Site) -> Source:  # noqa: A001 - read as nvml.open
    from podgpu.sources.nvml.sampler import Sampler

    library = str(options.library) if options.library else None
    return Sampler(interval=site.interval, library=library, watched=site.watched)
