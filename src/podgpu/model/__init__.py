"""The nouns. Frozen, no I/O, no NVML, no Prometheus.

What there is thousands of has `gc=False`: a tree has no cycles, so the garbage collector need not walk it. All names
that are imported here are meant to be imported from here.
"""

from podgpu.model.card import (
    ENDED,
    UNATTRIBUTED,
    Balance,
    Band,
    Booking,
    Card,
    Excused,
    Lane,
    Lanes,
    Rest,
    Sampling,
    Tenant,
    XidRecord,
)
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
    GuestCard,
    Instance,
    MigInstance,
    Process,
    Reading,
    Refused,
    Slice,
    Span,
    SwitchLog,
    value_of,
)
from podgpu.model.insight import (
    HOLDING_STATES,
    SEVERITIES,
    CardUse,
    FreeInstances,
    Group,
    Holding,
    Insight,
    Moment,
    PriceChange,
    Prices,
    Problem,
    Sums,
    Use,
    XidMark,
)
from podgpu.model.kube import ClaimedDevice, DynamicAllocation, KubeNode, KubeObjects, PoolDevice, ResourceClaim
from podgpu.model.pod import (
    Allocation,
    Claim,
    ClaimUse,
    ContainerRef,
    ExtendedUse,
    Holder,
    Owner,
    OwnerReference,
    Pod,
    PodContainer,
    VirtualGpu,
    Waiting,
    Workload,
)
from podgpu.model.snapshot import (
    CLUSTER_SCHEMA,
    NODE_STATES,
    ORIGINS,
    SCHEMA,
    Cluster,
    ClusterNode,
    ErrorCount,
    PartStatus,
    PendingPod,
    Report,
    SharingStatus,
    Snapshot,
    Written,
    XidEvent,
    of_one,
)
from podgpu.model.statement import KINDS, ChargePeriod, Coverage, GpuCoverage, Statement, StatementLine, total_of
