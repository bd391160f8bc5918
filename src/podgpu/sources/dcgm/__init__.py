"""The pages of dcgm-exporter as a source, in the format of any version."""

from typing import TYPE_CHECKING

from podgpu.errors import UserError
from podgpu.sources.protocols import PageFinder, Site, Source, SourceEntry

if TYPE_CHECKING:
    from podgpu.sources.dcgm.options import DcgmOptions

NAME = "dcgm"
PORT = 9400  # where dcgm-exporter serves its page, unless its pod names another port


def _open(options: "DcgmOptions", site: Site) -> Source:
    from podgpu.sources.dcgm.page import PageClient
    from podgpu.sources.dcgm.source import DcgmSource, FixedPages

    finder = _pods(options, site) if options.url is None else FixedPages({options.url: site.node})
    return DcgmSource(finder, PageClient(timeout=options.timeout, max_bytes=options.max_bytes))


def _pods(options: "DcgmOptions", site: Site) -> PageFinder:
    finder = site.find_pods(
        options.selector,
        namespace=options.namespace,
        port=options.port or PORT,
        fixed=options.port is not None,
        path=options.path,
    )
    if finder is None:
        raise UserError(
            "there is no API server to find the dcgm-exporter with; "
            "give the address of its page with --dcgm.url=http://HOST:9400/metrics"
        )
    return finder


SOURCE = SourceEntry(
    name=NAME,
    help="the page of a dcgm-exporter",
    open=_open,
    names_holders=True,
    sees_processes=False,
    lends_profiling=True,
)
