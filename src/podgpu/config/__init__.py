"""What a user can set: the core options, and those that sources and dialects declare beside their code."""

from podgpu.config.cluster import ClusterOptions
from podgpu.config.fields import Config
from podgpu.config.sections import OPTIONS
from podgpu.config.terminal import Terminal

__all__ = ["OPTIONS", "ClusterOptions", "Config", "Terminal"]
