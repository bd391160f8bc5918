"""The nouns. Frozen, no I/O, no NVML, no Prometheus."""

from podgpu.model.device import Device, Fault, Gpu, Instance, MigInstance, Process, Reading
from podgpu.model.ledger import ENDED, UNATTRIBUTED, Balance, Booking, Claim, Remainder
from podgpu.model.pod import (
    Allocation,
    ContainerRef,
    DynamicAllocation,
    Holder,
    Owner,
    OwnerReference,
    Pod,
    PodContainer,
    Workload,
)
from podgpu.model.report import Report, XidEvent
from podgpu.model.snapshot import SCHEMA, ErrorCount, PartStatus, Snapshot

__all__ = [
    "ENDED",
    "SCHEMA",
    "UNATTRIBUTED",
    "Allocation",
    "Balance",
    "Booking",
    "Claim",
    "ContainerRef",
    "Device",
    "DynamicAllocation",
    "ErrorCount",
    "Fault",
    "Gpu",
    "Holder",
    "Instance",
    "MigInstance",
    "Owner",
    "OwnerReference",
    "PartStatus",
    "Pod",
    "PodContainer",
    "Process",
    "Reading",
    "Remainder",
    "Report",
    "Snapshot",
    "Workload",
    "XidEvent",
]
