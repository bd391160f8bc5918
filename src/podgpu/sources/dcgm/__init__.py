"""The pages of dcgm-exporter, of any generation, as a source."""

from collections.abc import Mapping
from dataclasses import dataclass

from podgpu.errors import UserError
from podgpu.model import Fault
from podgpu.option import SOURCE, Option, at_most_one, one
from podgpu.option.value import OneOf, duration, page_address, size
from podgpu.sources import Site, Source, Whereabouts

NAME = "dcgm"
HELP = "the page of a dcgm-exporter"
NAMES_HOLDERS = True
SEES_PROCESSES = False
LENDS_PROFILING = True
PORT, PATH = 9400, "/metrics"  # of dcgm-exporter, unless its pod names another port


@dataclass(frozen=True, kw_only=True)
class Options:
    url: str | None = at_most_one(
        Option(
            flag="--dcgm.url",
            group=SOURCE,
            help="The page of this node's dcgm-exporter.",
            parse=page_address,
            value_name="URL",
            default_note="found by the API server",
        )
    )
    selector: str = one(
        Option(
            flag="--dcgm.selector",
            group=SOURCE,
            help="Labels by which the API server finds the dcgm-exporter of this node.",
            parse=str,
            value_name="SELECTOR",
            default="app.kubernetes.io/name=dcgm-exporter",
        )
    )
    namespace: str | None = at_most_one(
        Option(
            flag="--dcgm.namespace",
            group=SOURCE,
            help="The namespace it runs in. Without it, any pod with these labels is believed.",
            parse=str,
            value_name="NAME",
            default_note="any",
        )
    )
    nodes: str = one(
        Option(
            flag="--dcgm.nodes",
            group=SOURCE,
            help="Whose dcgm-exporters are looked for: this node's, or all nodes' for one view of a cluster.",
            parse=OneOf(("this", "all")),
            default="this",
        )
    )
    timeout: float = one(
        Option(
            flag="--dcgm.timeout",
            group=SOURCE,
            help="How long its page may take, from 100ms to 1m.",
            parse=duration("100ms", "1m"),
            value_name="DURATION",
            default="10s",
        )
    )
    max_bytes: int = one(
        Option(
            flag="--dcgm.max-bytes",
            group=SOURCE,
            help="How large its page may be, several together, from 64KiB to 256MiB.",
            parse=size("64KiB", "256MiB"),
            value_name="SIZE",
            default="16MiB",
        )
    )


def open(options: Options, site: Site) -> Source:  # noqa: A001 - read as dcgm.open
    from podgpu.sources.dcgm.source import DcgmPages

    pages = _pages(options, site)
    return DcgmPages(
        pages.find,
        timeout=options.timeout,
        max_bytes=options.max_bytes,
        node=site.node,
        closing=pages.close,
    )


def spans_nodes(options: Options) -> str:
    return "--dcgm.nodes=all" if options.nodes == "all" else ""


def _pages(options: Options, site: Site) -> Whereabouts:
    setting = spans_nodes(options)
    if options.url is not None:
        if setting:
            raise UserError(f"{setting} looks for the pages by itself; leave out --dcgm.url")
        return OnePage(options.url, site.node)
    found = site.find_pods(
        options.selector, namespace=options.namespace or "", port=PORT, path=PATH, all_nodes=bool(setting)
    )
    if found is None and setting:
        raise UserError(
            f"{setting} finds the dcgm-exporters by the API server, and there is none; give it with --kube.api=URL"
        )
    if found is None:
        raise UserError(
            "the page of a dcgm-exporter is needed, and there is no API server to find it by; "
            "give it with --dcgm.url=http://HOST:9400/metrics"
        )
    return found


@dataclass(frozen=True, slots=True)
class OnePage:
    """The page whose address the user gave."""

    url: str
    node: str

    async def find(self) -> tuple[Mapping[str, str], Fault | None]:
        return {self.url: self.node}, None

    async def close(self) -> None:
        """Nothing is open."""
