"""What conclusions depend on, by the configuration."""

from podgpu.config import Config
from podgpu.config.price import PriceOptions
from podgpu.insight import Terms


def open_terms(config: Config) -> Terms:
    return Terms(idle_after=config.idle_after, prices=config.of(PriceOptions).price)
