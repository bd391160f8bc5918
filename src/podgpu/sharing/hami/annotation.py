"""What HAMi writes on pods and nodes.

A pod has an entry for each container, ended by `;`, in which each device is ended by `:`. A device is
`UUID,TYPE,MiB,CORES%`. Anyone who may edit the pod can write there, so an entry counts only for a container with as
many ids as it has devices. Which container an entry belongs to depends on the version. Up to 2.9 every container has
one, empty or `,,0,0:` if it asks for no GPU; older versions leave out init containers. From 2.10 on only containers
that ask for a GPU have one. The version is not known, so an entry counts if all readings that fit the kubelet's list
agree on it. Where the spec is not known, containers with equally many ids and different entries cannot be told apart,
and have none.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.json import Decoder

from podgpu.model import Device, Pod, PodContainer
from podgpu.model.kube import quantity
from podgpu.sharing import kube_cards
from podgpu.sharing.inventory import MIB, Inventory, by_number, decoded

DEVICES_ALLOCATED = "hami.io/vgpu-devices-allocated"
MIG_ALLOCATIONS = "hami.io/vgpu-mig-allocations"
NODE_CARDS = "hami.io/node-nvidia-register"  # on the node
MOST_MIB = 1 << 24
MOST_ENTRIES = 512  # more than a pod has containers
MOST_DEVICES = 1024  # in all entries
REMEMBERED = 512  # annotations whose content is cached
NO_DEVICE = ("", ",,0,0")
# In MIG mode versions before 2.10 put the template and the instance's place in it in brackets after the UUID.
_DEVICE = re.compile(
    r"(?P<card>[-0-9A-Za-z]{1,64})(?:\[(?:[0-9]{1,4}-(?P<place>[0-9]{1,3})|[-0-9]{0,16})\])?"
    r",[\x20-\x2b\x2d-\x7e]{1,80},(?P<mib>[0-9]{1,8}),(?P<cores>[0-9]{1,3})"
)


class HamiDevice(Struct, frozen=True, kw_only=True):
    """What a container has of a card: bytes and percent, 0 where there is no limit.

    If the annotation names a MIG instance, `mig` is its UUID, or `place` its place among the card's instances.
    """

    text: str
    card: str
    memory: int
    cores: int
    mig: str = ""
    place: int | None = None


class MigAllocation(Struct, rename="camel"):
    container_index: int
    device_index: int
    mig_uuid: str = field(default="", name="migUUID")


class RegisteredCard(Struct):
    id: str
    index: int | None = None
    devmem: int = 0
    type: str = ""


Entry: TypeAlias = tuple[HamiDevice | None, ...]  # one container's devices; None is one that cannot be read
_decode_cards = Decoder(list[RegisteredCard]).decode
_decode_migs = Decoder(list[MigAllocation]).decode


def matched(pod: Pod, given: Mapping[str, int], resources: Collection[str]) -> dict[str, Entry]:
    """Find the entry of each container. `given` is how many ids of these resources each has."""
    text = pod.annotations[DEVICES_ALLOCATED]
    if text.count(";") > MOST_ENTRIES or text.count(":") > MOST_DEVICES:
        return {}
    entries = _entries(text, pod.annotations.get(MIG_ALLOCATIONS, "[]"))
    fitting = [placed for placed in _readings(pod, entries, resources) if _fits(placed, given, pod)]
    if not fitting:
        return next(filter(None, (by_number(likely, given) for likely in _likely(pod, given, entries))), {})
    found = {name: {placed[name] for placed in fitting} for name in fitting[0] if name in given}
    return {name: next(iter(options)) for name, options in found.items() if len(options) == 1}


def lenders(pod: Pod, given: Mapping[str, int], resources: Collection[str]) -> dict[str, str]:
    """Return, for each init container that uses another container's entry, the name of that container.

    Versions up to 2.6 write no entries for init containers, and their plugin gives the first entry of the right length
    to the container that starts first. The container that it was written for asked for devices and was given none.
    """
    entries = _entries(pod.annotations[DEVICES_ALLOCATED], pod.annotations.get(MIG_ALLOCATIONS, "[]"))
    lasting = pod.main_containers if pod.phase else []
    if len(entries) != len(lasting):
        return {}
    init = {container.name for container in pod.containers if container.is_init}
    written = {
        entry: container.name
        for container, entry in zip(reversed(lasting), reversed(entries), strict=True)
        if container.name not in given and _asks(container, resources)
    }
    had = matched(pod, given, resources)
    return {name: written[entry] for name, entry in had.items() if name in init and entry in written}


def _asks(container: PodContainer, resources: Collection[str]) -> bool:
    return any(quantity(container.limits.get(name, "")) for name in resources)


def _readings(pod: Pod, entries: Sequence[Entry], resources: Collection[str]) -> Iterator[dict[str, Entry]]:
    """Yield the ways to assign all entries to containers. The spec of a pod without a phase is not known."""
    listed = [container for container in pod.containers if pod.phase and not container.is_ephemeral]
    lasting = [container for container in listed if not container.is_init]
    for containers in (listed, lasting):
        if containers and len(entries) == len(containers):
            yield {container.name: entry for container, entry in zip(containers, entries, strict=True)}
    asking = [container.name for container in listed if _asks(container, resources)]
    full = [entry for entry in entries if entry]
    if asking and len(full) == len(asking):
        yield dict(zip(asking, full, strict=True))


def _fits(placed: Mapping[str, Entry], given: Mapping[str, int], pod: Pod) -> bool:
    """Whether the entries have the right lengths. The kubelet lists only those init containers that keep running."""
    init = {container.name for container in pod.containers if container.is_init}
    return given.keys() <= placed.keys() and all(
        len(entry) == given.get(name, 0) for name, entry in placed.items() if name in given or name not in init
    )


def _likely(pod: Pod, given: Mapping[str, int], entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Yield what may be the entries of the containers that the kubelet lists.

    Newer versions of HAMi put init containers first. Of these the kubelet lists only the ones that keep running. The
    pod's other containers take over what the rest had.
    """
    init = [container.name for container in pod.containers if container.is_init]
    unlisted = {place for place, name in enumerate(init) if name not in given}
    yield [entry for place, entry in enumerate(entries) if entry and place not in unlisted]
    if len(entries) <= len(pod.containers) - len(init):
        yield [entry for entry in entries if entry]


@lru_cache(REMEMBERED)
def _entries(text: str, of_migs: str) -> tuple[Entry, ...]:
    migs = _migs(of_migs)
    return tuple(
        tuple(
            _device(device, migs.get((place, index), ""))
            for index, device in enumerate(text for text in entry.split(":") if text not in NO_DEVICE)
        )
        for place, entry in enumerate(text.removesuffix(";").split(";"))
    )


def _device(text: str, mig: str) -> HamiDevice | None:
    match = _DEVICE.fullmatch(text)
    mib, cores = (int(match["mib"]), int(match["cores"])) if match else (0, 0)
    if match is None or mib > MOST_MIB or cores > 100:
        return None
    place = None if match["place"] is None else int(match["place"])
    return HamiDevice(text=text, card=match["card"], memory=mib * MIB, cores=cores, mig=mig, place=place)


def _migs(text: str) -> dict[tuple[int, int], str]:
    """Return the UUIDs of instances, by the places of the entry and of the device in it."""
    found = decoded(text, _decode_migs) or ()
    return {(instance.container_index, instance.device_index): instance.mig_uuid for instance in found}


def cards(inventory: Inventory) -> Iterator[Device]:
    """Yield the cards that the plugin lists on its node: as JSON, or in older versions as fields with commas.

    Devices of other vendors have annotations of their own. With memory scaling a card is listed with more memory than
    it has.
    """
    text = inventory.node.annotations.get(NODE_CARDS, "")
    for listed in decoded(text, _decode_cards) or () if text.lstrip().startswith("[") else _joined(text):
        if kube_cards.UUID.fullmatch(listed.id):
            number = listed.index if listed.index is not None and 0 <= listed.index < kube_cards.MOST_CARDS else None
            memory = listed.devmem * MIB if 0 < listed.devmem <= MOST_MIB else None
            yield kube_cards.card(listed.id, number=number, model=listed.type, memory=memory)


def _joined(text: str) -> Iterator[RegisteredCard]:
    """Read `UUID,COUNT,MiB,CORES,TYPE,NUMA,HEALTH[,INDEX,MODE]:`."""
    for card in text.split(":"):
        fields = card.split(",")
        if len(fields) >= 7:
            index = kube_cards.number(fields[7]) if len(fields) > 7 else None
            memory = kube_cards.number(fields[2]) or 0
            yield RegisteredCard(id=fields[0], index=index, devmem=memory, type=fields[4])
