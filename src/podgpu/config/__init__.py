"""Everything that a user can set: the core's options, and those that sources and dialects declare."""

from podgpu.config.fields import Config
from podgpu.config.sections import OPTIONS, ClusterOptions, PriceOptions, TerminalOptions

__all__ = ["OPTIONS", "ClusterOptions", "Config", "PriceOptions", "TerminalOptions"]
