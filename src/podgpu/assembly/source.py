"""The source that the configuration asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from podgpu.errors import UserError

if TYPE_CHECKING:
    from podgpu.config import Config
    from podgpu.kube.endpoints import Endpoints
    from podgpu.model import Fault
    from podgpu.sources import Source

PORT, PATH = 9400, "/metrics"  # of dcgm-exporter, unless its pod names another port


def open_source(config: Config) -> Source:
    if config.dcgm_nodes == "all":
        _check_all_nodes(config)
    if config.source == "simulator":
        from podgpu.sources.simulator import Simulator

        return Simulator(seed=config.simulator_seed)
    if config.source == "nvml":
        return _nvml(config)
    if config.source == "dcgm":
        return _dcgm(config)
    from podgpu.sources.merged import Merged

    return Merged(_nvml(config), _dcgm(config))


def _check_all_nodes(config: Config) -> None:
    if config.source != "dcgm":
        raise UserError(
            "--dcgm.nodes=all goes with --source=dcgm: the driver knows the cards of this node alone"
        )
    if config.dcgm_url is not None:
        raise UserError("--dcgm.nodes=all looks for the pages by itself; leave out --dcgm.url")


def _nvml(config: Config) -> Source:
    from podgpu.agent.sampler import Sampler

    library = str(config.nvml_library) if config.nvml_library else None
    return Sampler(interval=config.interval, library=library)


def _dcgm(config: Config) -> Source:
    from podgpu.sources.dcgm import DcgmPages

    timeout, max_bytes = config.dcgm_timeout, config.dcgm_max_bytes
    if config.dcgm_url is None:
        endpoints = _endpoints(config)
        return DcgmPages(
            endpoints.find,
            timeout=timeout,
            max_bytes=max_bytes,
            node=config.node_name,
            closing=endpoints.close,
        )
    pages = {config.dcgm_url: config.node_name}

    async def find() -> tuple[Mapping[str, str], Fault | None]:
        return pages, None

    return DcgmPages(find, timeout=timeout, max_bytes=max_bytes, node=config.node_name)


def _endpoints(config: Config) -> Endpoints:
    from podgpu.assembly.api_server import open_api_server
    from podgpu.kube.endpoints import Endpoints

    api = open_api_server(config)
    if api is None and config.dcgm_nodes == "all":
        raise UserError(
            "--dcgm.nodes=all finds the dcgm-exporters by the API server, and there is none; "
            "give it with --kube.api=URL"
        )
    if api is None:
        raise UserError(
            f"--source={config.source} needs the page of a dcgm-exporter, and there is no API server to find it by; "
            "give it with --dcgm.url=http://HOST:9400/metrics"
        )
    return Endpoints(
        api,
        node=None if config.dcgm_nodes == "all" else config.node_name,
        selector=config.dcgm_selector,
        namespace=config.dcgm_namespace or "",
        port=PORT,
        path=PATH,
    )
