"""dcgm-exporter up to 4.8, with its names, units, labels and file of counters."""

from functools import partial

from msgspec.structs import replace

from podgpu.catalog.row import Alias, Kind, Metric
from podgpu.model import Snapshot
from podgpu.views.dialects import Dialect
from podgpu.views.dialects._dcgm import page
from podgpu.views.dialects._dcgm.counters import DECIMALS, DEFAULTS, DcgmPageOptions, Generation
from podgpu.views.sample_format import decimals, shortest
from podgpu.views.series import Family

# What 4.8.3 changed without a change of names.
_RENAMED_LABEL = "hostname"
_GAUGES = "DCGM_FI_DEV_NVLINK_BANDWIDTH_"


def _since_4_8_3(row: Metric) -> Alias | None:
    alias = row.dcgm
    return replace(alias, kind=Kind.GAUGE) if alias and alias.name.startswith(_GAUGES) else alias


_BY_LABEL = {
    generation.hostname: generation
    for generation in (
        Generation(lambda row: row.dcgm, lambda fact: fact.dcgm, DEFAULTS, "Hostname", decimals(DECIMALS)),
        Generation(_since_4_8_3, lambda fact: fact.dcgm, DEFAULTS, _RENAMED_LABEL, shortest),
    )
}


def families(snapshot: Snapshot, options: DcgmPageOptions, *, full: bool = False) -> list[Family]:
    return page.families(snapshot, options, _BY_LABEL[options.hostname_label], full=full)


DIALECT = Dialect(
    pages={"/metrics/dcgm": families},
    full_pages={"/metrics/dcgm": partial(families, full=True)},
    options=DcgmPageOptions,
)
