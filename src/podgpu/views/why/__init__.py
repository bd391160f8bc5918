"""How do you know? The whole chain of evidence for one pod, or one outside Kubernetes, for a terminal."""

from podgpu.views.why.chain import pod_names, workload_names
from podgpu.views.why.document import evidence
from podgpu.views.why.report import why, why_outsider

__all__ = ["evidence", "pod_names", "why", "why_outsider", "workload_names"]
