"""What a source hands to the agent once a cycle."""

from msgspec import Struct

from podgpu.model.device import Device, Fault


class XidEvent(Struct, frozen=True, kw_only=True):
    """One XID the driver raised since the report before. Two equal ones are two events."""

    uuid: str
    xid: int
    at: float


class Report(Struct, frozen=True, kw_only=True):
    """Devices that could be read, and the reason when the source as a whole could not be."""

    devices: tuple[Device, ...] = ()
    fault: Fault | None = None
    events: tuple[XidEvent, ...] = ()
    errors: dict[str, int] = {}
    driver_version: str = ""
    nvml_version: str = ""
    seconds: float = 0.0
