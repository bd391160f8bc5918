"""The status page: plain HTML without script, so it works under a strict content security policy."""

from podgpu.views.page.document import html

__all__ = ["html"]
