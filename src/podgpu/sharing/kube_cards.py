"""Cards as Kubernetes shows them, on a node without an agent: without readings, and often without a UUID."""

import re
from collections.abc import Iterable, Iterator, Mapping

from podgpu.model import UNKNOWN, Ability, Device, Gpu, Instance, KubeNode, MigInstance, Reading
from podgpu.model.kube import quantity

MEMORY = "memory_total_bytes"
MOST_CARDS = 1024  # no node has as many
MOST_PARTS = 4096  # nor has a card
MOST_BYTES = 1 << 44  # nor has a card as much memory

# What NVIDIA adds to a resource for the label that says how often each device is handed out.
REPLICAS = ".replicas"

UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MIG = re.compile(r"MIG-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def card(
    uuid: str = "",
    *,
    number: int | None = None,
    model: str = "",
    memory: int | None = None,
    instances: Iterable[MigInstance] = (),
) -> Device:
    """Make a card. A `number` may be the driver's index or the one in /dev: its writer does not say which."""
    index = UNKNOWN if number is None else number
    migs = tuple(Instance(mig=mig) for mig in instances)
    return Device(
        gpu=Gpu(uuid=uuid, index=index, minor=number, model=model, mig_enabled=bool(migs)),
        ability=Ability(),
        readings=(Reading(MEMORY, float(memory)),) if memory else (),
        instances=migs,
    )


def instance(
    name: str, *, profile: str = "", place: tuple[int, int] = (UNKNOWN, UNKNOWN), start: int | None = None
) -> MigInstance:
    """`place` are the numbers of the GPU instance and of the compute instance in it."""
    gi, ci = place
    return MigInstance(uuid=name, gpu_instance_id=gi, compute_instance_id=ci, profile=profile, start=start)


def by_uuid(names: Iterable[str]) -> Iterator[Device]:
    """Yield a card for each name that is a UUID, once."""
    return (card(name) for name in dict.fromkeys(names) if UUID.fullmatch(name))


def offered(resources: Mapping[str, str], name: str) -> int:
    """How many devices of a resource a node offers; 0 if none, or if that is no number."""
    return count(resources.get(name, ""))


def count(text: str) -> int:
    """Read a quantity of devices; 0 if it is none. Nearly all are plain numbers, which take no fractions."""
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    return int(quantity(text) or 0) if text else 0


def size(value: str | int) -> int | None:
    """Read a number of bytes that a card may have."""
    found = quantity(value)
    return int(found) if found and 1 <= found <= MOST_BYTES else None


def numbered(many: int, memory: int | None = None) -> list[Device]:
    return [card(number=number, memory=memory) for number in range(min(many, MOST_CARDS))]


def parts_of_each(node: KubeNode, resource: str, label: str, least: int, devices: int) -> int:
    """Into how many parts each device of a resource is cut; 0 if that is not clear.

    The label may say so. There are at least `least` parts of a device, and so many `devices`, all cut alike.
    """
    said = node.labels.get(label or f"{resource}{REPLICAS}", "")
    if said.isascii() and said.isdigit() and len(said) < 5 and int(said) >= least:
        return int(said)
    total = offered(node.capacity, resource)
    most = total // devices
    fitting = [parts for parts in range(least, min(most, MOST_PARTS) + 1) if total % parts == 0]
    return fitting[0] if len(fitting) == 1 else 0
