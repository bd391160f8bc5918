"""Cards as Kubernetes shows them, on a node without an agent: without readings, and often without a UUID."""

import re
from collections.abc import Iterable, Iterator, Mapping

from podgpu.model import UNKNOWN, Ability, Device, Gpu, Instance, KubeNode, MigInstance, Reading
from podgpu.model.kube import quantity

MEMORY = "memory_total_bytes"
MOST_CARDS = 1024  # of a node; more are not believed
MOST_PARTS = 4096  # of a card
MOST_BYTES = 1 << 44  # of a card

# A resource's name with this is the label in which NVIDIA says how often each device is handed out.
REPLICAS = ".replicas"
COUNT = ".count"  # the same, for how many devices there are
_PROFILE = re.compile(r"nvidia\.com/mig-(?P<slices>[1-9])[cg]\.[-.+0-9a-z]{1,32}")
MOST_SLICES = 7  # of a card

UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MIG = re.compile(r"MIG-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def card(
    uuid: str = "",
    *,
    number: int | None = None,
    model: str = "",
    memory: int | None = None,
    instances: Iterable[MigInstance] = (),
    in_mig_mode: bool = False,
) -> Device:
    """Make a card. Its `number` may be the driver's index or that of /dev/nvidiaN: whoever wrote it does not say.

    One `in_mig_mode` may have instances that are not known.
    """
    index = UNKNOWN if number is None else number
    migs = tuple(Instance(mig=mig) for mig in instances)
    return Device(
        gpu=Gpu(uuid=uuid, index=index, minor=number, model=model, mig_enabled=in_mig_mode or bool(migs)),
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
    """Return how many devices of a resource a node offers; 0 if none, or if that is not a number."""
    return count(resources.get(name, ""))


def count(text: str) -> int:
    """Read a quantity of devices; 0 if it is not one. Nearly all are plain numbers, which are faster to read."""
    plain = number(text)
    if plain is not None:
        return plain
    return int(quantity(text) or 0) if text else 0


def number(text: str, most_digits: int = 9) -> int | None:
    """Read a plain number. Anyone may have written it, and Python raises for one of thousands of digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= most_digits else None


def size(value: str | int) -> int | None:
    """Read a number of bytes, if it is one that a card may have."""
    found = quantity(value)
    return int(found) if found and 1 <= found <= MOST_BYTES else None


def least_in_mig_mode(node: KubeNode) -> int:
    """Return how many cards in MIG mode a node has at least, by the resources of their profiles.

    An instance may be offered several times, so only the label says how many there are.
    """
    profiles = [found for found in map(_PROFILE.fullmatch, node.capacity) if found and offered(node.capacity, found[0])]
    slices = sum(offered(node.labels, f"{found[0]}{COUNT}") * int(found["slices"]) for found in profiles)
    return min(max(1, -(-slices // MOST_SLICES)), MOST_CARDS) if profiles else 0


def numbered(many: int, memory: int | None = None) -> list[Device]:
    return [card(number=number, memory=memory) for number in range(min(many, MOST_CARDS))]


def parts_of_each(node: KubeNode, resource: str, label: str, least: int, devices: int) -> int:
    """Return into how many parts each device of a resource is divided; 0 if that is not clear.

    The label may say so. Else it follows from the node's capacity: all `devices` are divided alike, into at least
    `least` parts each.
    """
    labelled = number(node.labels.get(label or f"{resource}{REPLICAS}", ""), 4)
    if labelled is not None and labelled >= least:
        return labelled
    total = offered(node.capacity, resource)
    most = total // devices
    fitting = [parts for parts in range(least, min(most, MOST_PARTS) + 1) if total % parts == 0]
    return fitting[0] if len(fitting) == 1 else 0
