"""HAMi's note on a pod: an entry for each container ended by `;`, a device of it by `:`.

A device is `UUID,TYPE,MiB,CORES%`. Whoever may edit the pod may write there, so an entry counts only for a container
with as many ids as it has devices. Entries are in the order of the spec, if they are as many as the containers there.
Else containers with equally many ids and different entries cannot be told apart, and have none.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec
from msgspec import Struct, field

from podgpu.model import Pod
from podgpu.sharing.inventory import by_number

NOTE = "hami.io/vgpu-devices-allocated"
MIG_NOTE = "hami.io/vgpu-mig-allocations"
MIB = 1 << 20
MOST_MIB = 1 << 24
MOST_ENTRIES = 512  # no pod has as many containers

# In MIG mode older versions put template and slot in brackets after the UUID.
_DEVICE = re.compile(
    r"([-0-9A-Za-z]{1,64})(?:\[[-0-9]{0,16}\])?,[\x20-\x2b\x2d-\x7e]{1,80},([0-9]{1,8}),([0-9]{1,3})"
)


class Slice(Struct, frozen=True, kw_only=True):
    """What a container has of a card: bytes and percent, 0 where there is no limit.

    `mig` is the UUID of an instance, if the note names one.
    """

    text: str
    card: str
    memory: int
    cores: int
    mig: str = ""


class MigNote(Struct, rename="camel"):
    container_index: int
    device_index: int
    mig_uuid: str = field(default="", name="migUUID")


Entry: TypeAlias = tuple[Slice | None, ...]  # one container's devices; None cannot be read


def matched(pod: Pod, given: Mapping[str, int]) -> dict[str, Entry]:
    """Find the entry of each container that was given ids, by their numbers."""
    if pod.annotations[NOTE].count(";") > MOST_ENTRIES:
        return {}
    entries = _entries(pod)
    return _by_order(pod, given, entries) or _by_number(pod, given, entries)


def _by_order(pod: Pod, given: Mapping[str, int], entries: Sequence[Entry]) -> dict[str, Entry]:
    """Newer versions of HAMi count the init containers too. A pod without a phase is not known by its spec."""
    listed = [one for one in pod.containers if pod.phase and not one.is_ephemeral]
    for containers in (listed, [one for one in listed if not one.is_init]):
        if len(entries) == len(containers) and given.keys() <= {one.name for one in containers}:
            placed = list(zip(containers, entries, strict=True))
            # The kubelet lists only those init containers that keep running.
            listed_ones = [(one, entry) for one, entry in placed if one.name in given or not one.is_init]
            if all(len(entry) == given.get(one.name, 0) for one, entry in listed_ones):
                return {one.name: entry for one, entry in placed if one.name in given}
    return {}


def _by_number(pod: Pod, given: Mapping[str, int], entries: Sequence[Entry]) -> dict[str, Entry]:
    found = (by_number(likely, given) for likely in _likely(pod, given, entries))
    return next(filter(None, found), {})


def _likely(pod: Pod, given: Mapping[str, int], entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Yield what may be the entries of the containers that the kubelet lists.

    Newer versions of HAMi put init containers first. Of these the kubelet lists only the ones that keep running; the
    others hold nothing that the pod's containers do not hold after them.
    """
    init = [one.name for one in pod.containers if one.is_init]
    unlisted = {place for place, name in enumerate(init) if name not in given}
    yield [entry for place, entry in enumerate(entries) if entry and place not in unlisted]
    if len(entries) <= len(pod.containers) - len(init):
        yield [entry for entry in entries if entry]


def _entries(pod: Pod) -> list[Entry]:
    migs = _migs(pod)
    return [
        tuple(
            _slice(device, migs.get((place, index), ""))
            for index, device in enumerate(filter(None, entry.split(":")))
        )
        for place, entry in enumerate(pod.annotations.get(NOTE, "").removesuffix(";").split(";"))
    ]


def _slice(text: str, mig: str) -> Slice | None:
    match = _DEVICE.fullmatch(text)
    mib, cores = (int(match[2]), int(match[3])) if match else (0, 0)
    if match is None or mib > MOST_MIB or cores > 100:
        return None
    return Slice(text=text, card=match[1], memory=mib * MIB, cores=cores, mig=mig)


def _migs(pod: Pod) -> dict[tuple[int, int], str]:
    """Instances by the places of the entry and of the device in it."""
    try:
        notes = msgspec.json.decode(pod.annotations.get(MIG_NOTE, "[]"), type=list[MigNote])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}
    return {(note.container_index, note.device_index): note.mig_uuid for note in notes}
