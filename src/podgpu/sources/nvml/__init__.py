"""The driver itself, by NVML.

All calls are made in the sampler, a child process of the agent. A hung call, a lost GPU or a crash in the driver's
library ends in that process and takes down no page.

    sampler  the source as the agent sees it: starts the child and watches over it
    child    the process: answers the agent's requests, watches deadlines
    session  the library: opened once per process, its GPUs enumerated again and again
    worker   a thread whose NVML calls can be seen from outside
    card     one GPU: its facts, readings, instances and processes
    handle   one NVML handle: guarded calls, remembered refusals
    plan     the catalog's rows grouped into as few calls as possible
    gpm, process, mig, event   what their names say
    wire     the messages between agent and sampler
"""

from dataclasses import dataclass
from pathlib import Path

from podgpu.option import SOURCE, Option, at_most_one
from podgpu.option.file import existing_file
from podgpu.sources import Site, Source

NAME = "nvml"
HELP = "the driver"
IS_DEFAULT = True
BORROWS_PROFILING = True  # cards before Hopper give NVML none


@dataclass(frozen=True, kw_only=True)
class Options:
    library: Path | None = at_most_one(
        Option(
            flag="--nvml.library",
            group=SOURCE,
            help="The driver's libnvidia-ml.so.1.",
            parse=existing_file,
            value_name="PATH",
            default_note="where the system finds it",
        )
    )


def open(options: Options, site: Site) -> Source:  # noqa: A001 - read as nvml.open
    from podgpu.sources.nvml.sampler import Sampler

    return Sampler(interval=site.interval, library=str(options.library) if options.library else None)
