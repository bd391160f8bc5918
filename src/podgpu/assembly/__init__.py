"""Puts the parts together according to the configuration, for the commands and for the library."""

from podgpu.config import ClusterOptions, Config, PriceOptions
from podgpu.insight import InsightSettings


def insight_settings(config: Config) -> InsightSettings:
    return InsightSettings(
        idle_after=config.idle_after,
        prices=config.of(PriceOptions).price,
        dark_critical=config.of(ClusterOptions).dark_critical,
    )
