"""The nouns. Frozen, no I/O, no NVML, no Prometheus.

What there is thousands of has `gc=False`: a tree has no cycles, so the garbage collector need not walk it.
"""

from podgpu.model.card import ENDED, UNATTRIBUTED, Balance, Band, Booking, Card, Rest, Tenant
from podgpu.model.claim import Claim
from podgpu.model.cluster import CLUSTER_SCHEMA, NODE_STATES, ORIGINS, Cluster, ClusterNode, PendingPod
from podgpu.model.device import (
    ENDED_PID,
    HIDDEN_PID,
    SEES_ALL,
    UNKNOWN,
    Ability,
    BusyWindow,
    Device,
    Fault,
    Gpu,
    Instance,
    MigInstance,
    Process,
    Reading,
    Refused,
    Slice,
    Span,
    SwitchLog,
)
from podgpu.model.dynamic import ClaimedDevice, DynamicAllocation, PoolDevice, ResourceClaim
from podgpu.model.kube import KubeNode, KubeObjects
from podgpu.model.pod import (
    Allocation,
    ClaimUse,
    ContainerRef,
    ExtendedUse,
    Holder,
    Owner,
    OwnerReference,
    Pod,
    PodContainer,
    Waiting,
    Workload,
)
from podgpu.model.price import Prices
from podgpu.model.report import Report, XidEvent
from podgpu.model.snapshot import SCHEMA, ErrorCount, PartStatus, SharingStatus, Snapshot
from podgpu.model.statement import KINDS, Statement, StatementLine, total_of
from podgpu.model.virtual import VirtualGpu

__all__ = [
    "CLUSTER_SCHEMA",
    "ENDED",
    "ENDED_PID",
    "HIDDEN_PID",
    "KINDS",
    "NODE_STATES",
    "ORIGINS",
    "SCHEMA",
    "SEES_ALL",
    "UNATTRIBUTED",
    "UNKNOWN",
    "Ability",
    "Allocation",
    "Balance",
    "Band",
    "Booking",
    "BusyWindow",
    "Card",
    "Claim",
    "ClaimUse",
    "ClaimedDevice",
    "Cluster",
    "ClusterNode",
    "ContainerRef",
    "Device",
    "DynamicAllocation",
    "ErrorCount",
    "ExtendedUse",
    "Fault",
    "Gpu",
    "Holder",
    "Instance",
    "KubeNode",
    "KubeObjects",
    "MigInstance",
    "Owner",
    "OwnerReference",
    "PartStatus",
    "PendingPod",
    "Pod",
    "PodContainer",
    "PoolDevice",
    "Prices",
    "Process",
    "Reading",
    "Refused",
    "Report",
    "ResourceClaim",
    "Rest",
    "SharingStatus",
    "Slice",
    "Snapshot",
    "Span",
    "Statement",
    "StatementLine",
    "SwitchLog",
    "Tenant",
    "VirtualGpu",
    "Waiting",
    "Workload",
    "XidEvent",
    "total_of",
]
