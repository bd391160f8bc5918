"""The pages of dcgm-exporter as a source, in the format of any version."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podgpu.errors import UserError
from podgpu.model import Fault
from podgpu.sources.protocols import PageFinder, Site, Source

if TYPE_CHECKING:
    from podgpu.sources.dcgm.options import DcgmOptions

NAME = "dcgm"
HELP = "the page of a dcgm-exporter"
NAMES_HOLDERS = True
SEES_PROCESSES = False
LENDS_PROFILING = True
PORT = 9400  # where dcgm-exporter serves its page, unless its pod names another port


def open(options: "DcgmOptions", site: Site) -> Source:  # noqa: A001 - read as dcgm.open
    from podgpu.sources.dcgm.page import PageClient
    from podgpu.sources.dcgm.source import DcgmSource

    found = _pages(options, site)
    pages = PageClient(timeout=options.timeout, max_bytes=options.max_bytes)
    return DcgmSource(found.find, pages, closing=found.close)


def _pages(options: "DcgmOptions", site: Site) -> PageFinder:
    if options.url is not None:
        return FixedPage(options.url, site.node)
    found = site.find_pods(
        options.selector,
        namespace=options.namespace or "",
        port=options.port or PORT,
        fixed=options.port is not None,
        path=options.path,
    )
    if found is None:
        raise UserError(
            "there is no API server to find the dcgm-exporter with; "
            "give the address of its page with --dcgm.url=http://HOST:9400/metrics"
        )
    return found


@dataclass(frozen=True, slots=True)
class FixedPage:
    """The page at the address that the user gave. Without a node, the host that the page names counts."""

    url: str
    node: str

    async def find(self) -> tuple[Mapping[str, str], Fault | None]:
        return {self.url: self.node}, None

    async def close(self) -> None:
        """Nothing is open."""
