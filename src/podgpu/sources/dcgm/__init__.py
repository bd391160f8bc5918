"""The pages of dcgm-exporter, of any generation, as a source."""

from podgpu.sources.dcgm.source import DcgmPages

__all__ = ["DcgmPages"]
