"""Puts the parts together according to the configuration, for the commands and for the library."""

from podgpu.config import Config
from podgpu.config.price import PriceOptions
from podgpu.insight import Terms


def insight_terms(config: Config) -> Terms:
    return Terms(idle_after=config.idle_after, prices=config.of(PriceOptions).price)
