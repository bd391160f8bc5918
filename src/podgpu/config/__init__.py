"""What a user can set: the core options, and those that sources and dialects declare beside their code."""

from podgpu.config.fields import Config
from podgpu.config.sections import OPTIONS, ClusterOptions, PriceOptions, TerminalOptions

__all__ = ["OPTIONS", "ClusterOptions", "Config", "PriceOptions", "TerminalOptions"]
