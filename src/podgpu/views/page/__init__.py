"""The page: a table in plain HTML, which podgpu's own modules replace where there is JavaScript."""

from podgpu.views.page.document import html
from podgpu.views.page.shell import POLICY

__all__ = ["POLICY", "html"]
