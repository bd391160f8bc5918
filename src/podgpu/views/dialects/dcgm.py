"""dcgm-exporter up to 4.8, with its names, units, labels and file of counters."""

from collections.abc import Mapping

from podgpu.model import Snapshot
from podgpu.views.dialects import Document, Families
from podgpu.views.dialects._dcgm import page
from podgpu.views.dialects._dcgm.counters import DEFAULTS, Generation, select_all, unavailable
from podgpu.views.dialects._dcgm.options import Options
from podgpu.views.series import Family

__all__ = ["DOCUMENTS", "MORE", "PAGES", "Options", "families", "unavailable"]

GENERATION = Generation(lambda row: row.dcgm, lambda fact: fact.dcgm, DEFAULTS)


def families(snapshot: Snapshot, options: Options) -> list[Family]:
    return page.families(snapshot, options, GENERATION, options.hostname_label)


def every_field(snapshot: Snapshot, options: Options) -> list[Family]:
    return page.families(snapshot, options, GENERATION, options.hostname_label, select_all)


PAGES: Mapping[str, Families] = {"/metrics/dcgm": families}
MORE: Mapping[str, Families] = {"/metrics/dcgm": every_field}
DOCUMENTS: Mapping[str, Document] = {}
