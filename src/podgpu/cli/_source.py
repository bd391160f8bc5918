"""The source that the configuration asks for."""

from podgpu.config import Config
from podgpu.sources import Source


def open_source(config: Config) -> Source:
    if config.source == "simulator":
        from podgpu.sources.simulator import Simulator

        return Simulator(seed=config.simulator_seed)
    from podgpu.agent.sampler import Sampler

    library = str(config.nvml_library) if config.nvml_library else None
    return Sampler(interval=config.interval, library=library)
