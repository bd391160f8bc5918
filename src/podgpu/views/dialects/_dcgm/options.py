"""The options of every page in dcgm-exporter's words."""

from dataclasses import dataclass

from podgpu import option
from podgpu.option.file import text_file
from podgpu.option.value import OneOf
from podgpu.views.dialects._dcgm.collectors import Collectors, collectors


@dataclass(frozen=True, kw_only=True)
class Options:
    collectors: Collectors | None = option.at_most_one(
        option.Option(
            flag="--dcgm.collectors",
            group=option.DIALECTS,
            help="Counters of the dcgm pages: a CSV file as dcgm-exporter reads it.",
            parse=text_file(
                collectors, kibibytes=1024, advice="give a file of counters, as dcgm-exporter reads it"
            ),
            value_name="PATH",
            default_note="dcgm-exporter's default counters",
        )
    )
    hostname_label: str = option.one(
        option.Option(
            flag="--dcgm.hostname-label",
            group=option.DIALECTS,
            help="How /metrics/dcgm spells the node's label: dcgm-exporter changed it in 4.8.3.",
            parse=OneOf(("Hostname", "hostname")),
            default="Hostname",
        )
    )
    per_container: str = option.one(
        option.Option(
            flag="--dcgm.per-container",
            group=option.DIALECTS,
            help="Whether the dcgm pages and container-json split use, memory and power of a shared GPU by container.",
            parse=OneOf(("on", "off")),
            default="off",
        )
    )
