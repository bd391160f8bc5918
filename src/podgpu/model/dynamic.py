"""Dynamic resource allocation (DRA): claims, and the devices that drivers offer."""

from msgspec import Struct


class DynamicAllocation(Struct, frozen=True, kw_only=True):
    """One device of a resource claim that the kubelet lists under a container.

    It lists every device of the claim, also those of requests that the container does not use. `share_id` names the
    part of a device that several claims may have.
    """

    namespace: str
    pod: str
    container: str
    claim_namespace: str
    claim_name: str
    driver: str
    pool: str
    device: str
    share_id: str = ""


class ClaimedDevice(Struct, frozen=True, kw_only=True):
    """One device that a claim was given for one of its requests.

    Of a device that several claims may have, `consumed` is what this one has of its capacity, as Kubernetes writes
    quantities, and `share_id` names that part.
    """

    request: str
    driver: str
    pool: str
    device: str
    share_id: str = ""
    consumed: dict[str, str] = {}


class ResourceClaim(Struct, frozen=True, kw_only=True):
    """`pod_uids` are the pods it is reserved for. `pod_name` is what a pod calls one that was made from a template.

    `classes` are the device classes that it asks for, kept as long as it was given no devices.
    """

    namespace: str
    name: str
    pod_name: str = ""
    devices: tuple[ClaimedDevice, ...] = ()
    pod_uids: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()


class PoolDevice(Struct, frozen=True, kw_only=True):
    """One device of a ResourceSlice. `attributes` without their driver's domain, text and numbers as text.

    `capacity` also without the domain, as Kubernetes writes quantities. `node` is empty if not known.
    """

    driver: str
    pool: str
    device: str
    attributes: dict[str, str] = {}
    capacity: dict[str, str] = {}
    node: str = ""
