"""dcgm-exporter up to 4.8, with its names, units, labels and file of counters."""

from collections.abc import Mapping

from podgpu.config import Config
from podgpu.model import Snapshot
from podgpu.views.dialects import Document, Families
from podgpu.views.dialects._dcgm import page
from podgpu.views.dialects._dcgm.counters import DEFAULTS, Generation, unavailable
from podgpu.views.series import Family

__all__ = ["DOCUMENTS", "PAGES", "families", "unavailable"]

GENERATION = Generation(lambda row: row.dcgm, lambda fact: fact.dcgm, DEFAULTS)


def families(snapshot: Snapshot, config: Config) -> list[Family]:
    return page.families(snapshot, config, GENERATION, config.dcgm_hostname_label)


PAGES: Mapping[str, Families] = {"/metrics/dcgm": families}
DOCUMENTS: Mapping[str, Document] = {}
