"""dcgm-exporter since 4.9: names that end in their unit, base units, and a lower-case `hostname`."""

from functools import partial

from podgpu.views.dialects import Dialect
from podgpu.views.dialects._dcgm import page
from podgpu.views.dialects._dcgm.counters import DEFAULTS, DcgmPageOptions, Generation
from podgpu.views.sample_format import shortest

# Since then the size of the memory is shown by default.
GENERATION = Generation(
    alias=lambda row: row.dcgm49,
    fact_name=lambda fact: fact.dcgm49,
    defaults=(*DEFAULTS, "DCGM_FI_DEV_FB_CAPACITY_BYTES"),
    hostname="hostname",
    fractions=shortest,
)


families = partial(page.families, generation=GENERATION)
DIALECT = Dialect(
    pages={"/metrics/dcgm-4.9": families},
    full_pages={"/metrics/dcgm-4.9": partial(families, full=True)},
    options=DcgmPageOptions,
)
