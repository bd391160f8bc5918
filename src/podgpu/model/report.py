"""What a source hands to the agent once a cycle."""

from msgspec import Struct

from podgpu.model.device import Device, Fault
from podgpu.model.pod import Allocation
from podgpu.model.snapshot import PartStatus


class XidEvent(Struct, frozen=True, kw_only=True):
    """One XID the driver raised since the report before. Two equal ones are two events."""

    uuid: str
    xid: int
    at: float


class Report(Struct, frozen=True, kw_only=True):
    """Devices that could be read, and the reason when the source as a whole could not be.

    `allocations` are what the source itself knows about who holds what, for nodes where the kubelet does not say.
    `node` is the name of the node as the source has it; empty if somebody else named it, or nobody did.
    `parts` are states of what the source is made of, and `part_errors` what is counted under their names.
    """

    devices: tuple[Device, ...] = ()
    fault: Fault | None = None
    events: tuple[XidEvent, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    parts: tuple[PartStatus, ...] = ()
    errors: dict[str, int] = {}
    part_errors: dict[str, dict[str, int]] = {}
    node: str = ""
    driver_version: str = ""
    nvml_version: str = ""
    seconds: float = 0.0
