"""What the API server knows of GPUs: nodes, pods, claims by dynamic resource allocation (DRA), and quantities."""

import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TypeVar

from msgspec import Struct

from podgpu.model.pod import Pod, Workload


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

    If several claims may share the device, `consumed` is how much of its capacity this one has, as Kubernetes writes
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

    `classes` are the device classes that it asks for, kept as long as it was given no devices. `monitored` are devices
    that it has admin access to: others hold them.
    """

    namespace: str
    name: str
    pod_name: str = ""
    devices: tuple[ClaimedDevice, ...] = ()
    pod_uids: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    monitored: tuple[ClaimedDevice, ...] = ()


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


class KubeNode(Struct, frozen=True, kw_only=True):
    """A node. Of labels and annotations only those are kept that say something about GPUs."""

    name: str
    address: str = ""  # its internal IP address; empty if not known
    ready: bool | None = None  # absent if not known
    cordoned: bool = False  # no pod is placed on it
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    allocatable: dict[str, str] = {}  # extended resources, as Kubernetes writes quantities
    capacity: dict[str, str] = {}  # the same before what is broken or reserved is taken off


class KubeObjects(Struct, frozen=True, kw_only=True):
    """Each tuple is the same object for as long as nothing in it changes. `workloads` are by the UID of the pod."""

    at: float  # seconds since 1970
    nodes: tuple[KubeNode, ...] = ()
    pods: tuple[Pod, ...] = ()  # of all nodes, and those that wait for one
    claims: tuple[ResourceClaim, ...] = ()
    devices: tuple[PoolDevice, ...] = ()  # what drivers offer, from resource slices
    workloads: dict[str, Workload] = {}


# Who reported a claim of a pod on a node without an agent: its status has device ids, its spec only numbers.
STATUS, SPEC = "pod status", "pod spec"

N = TypeVar("N", int, float)
T = TypeVar("T")
K = TypeVar("K")

_QUANTITY = re.compile(
    r"\+?(?P<number>[0-9]{1,18}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})(?P<unit>[A-Za-z]{0,2}|[eE][+-]?[0-9]{1,2})"
)
_UNITS = (
    {"": Fraction(1), "m": Fraction(1, 1000), "u": Fraction(1, 1000**2), "n": Fraction(1, 1000**3)}
    | {unit: Fraction(1000**power) for power, unit in enumerate("kMGTPE", 1)}
    | {f"{unit}i": Fraction(1024**power) for power, unit in enumerate("KMGTPE", 1)}
    | {f"e{power}": Fraction(10) ** power for power in range(-18, 19)}
)


def quantity(value: str | int) -> Fraction | None:
    """Parse a quantity. None if it is 0, or no quantity."""
    found = Fraction(value) if isinstance(value, int) else _parsed(value)
    return found if found and found > 0 else None


def amount(value: str) -> float | None:
    """Parse a quantity, which may be 0. None if it is no quantity."""
    found = _parsed(value)
    return None if found is None else float(found)


def total(values: Iterable[N | None]) -> N | None:
    """Add up. The sum is unknown if a part of it is, or if there is nothing to add up."""
    found = list(values)
    return None if None in found else total_of_known(found)


def total_of_known(values: Iterable[N | None]) -> N | None:
    """Add up what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known else None


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Put items of the same key together, in their order."""
    found: dict[K, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def only(names: Iterable[str]) -> str:
    """Return the name if all are the same; empty if they differ, or if there is none."""
    found = set(names)
    return found.pop() if len(found) == 1 else ""


def _parsed(text: str) -> Fraction | None:
    found = _QUANTITY.fullmatch(text)
    unit = _UNITS.get(_unit(found["unit"])) if found else None
    return None if found is None or unit is None else Fraction(found["number"]) * unit


def _unit(text: str) -> str:
    """Write an exponent in one way: `E+03` as `e3`. `E` alone is a unit."""
    is_exponent = text[:1] in ("e", "E") and len(text) > 1 and text[-1].isdigit()
    return f"e{int(text[1:])}" if is_exponent else text
