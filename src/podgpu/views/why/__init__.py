"""How do you know? The whole chain of evidence for one pod, for a terminal."""

from podgpu.views.why.chain import pod_names
from podgpu.views.why.report import why

__all__ = ["pod_names", "why"]
