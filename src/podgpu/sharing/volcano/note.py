"""Volcano's note on a pod: an entry for each container with a vGPU, joined by `;`, each device of it ended by `:`.

A device is `UUID,TYPE,UNITS,CORES%`. Anyone who may edit the pod can write there, so an entry counts only for a
container with as many ids as it has devices. Entries are in the order of the spec; where that is not known, containers
with equally many ids and different entries cannot be distinguished, and have none.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct

from podgpu.model import Pod
from podgpu.sharing.inventory import by_number

NOTE = "volcano.sh/vgpu-ids-new"
MOST_UNITS = 1 << 24
MOST_ENTRIES = 512  # no pod has as many containers
MOST_DEVICES = 1024  # in all entries
REMEMBERED = 512  # notes that need not be read again

# In MIG mode template and slot stand in brackets after the UUID.
_DEVICE = re.compile(
    r"([-0-9A-Za-z]{1,64})(?:\[[-.+\w]{0,64}\])?,[\x20-\x2b\x2d-\x7e]{1,80},([0-9]{1,8}),([0-9]{1,3})",
    re.ASCII,
)


class VolcanoDevice(Struct, frozen=True, kw_only=True):
    """What a container has of a card: units of memory, and per cent of the cores. 0 is no limit."""

    text: str
    card: str
    units: int
    cores: int = 0


Entry: TypeAlias = tuple[VolcanoDevice | None, ...]  # one container's devices; None cannot be read


def matched(pod: Pod, given: Mapping[str, int]) -> dict[str, Entry]:
    """Find the entry of each container that was given ids, by their numbers."""
    text = pod.annotations[NOTE]
    if text.count(";") > MOST_ENTRIES or text.count(":") > MOST_DEVICES:
        return {}
    entries = _entries(text)
    # A pod without a phase is not known by its spec.
    names = [one.name for one in pod.containers if pod.phase and not one.is_init and one.name in given]
    counts = [given[name] for name in names]
    if len(names) == len(given) and counts == list(map(len, entries)):
        return dict(zip(names, entries, strict=True))
    return by_number(entries, given)


@lru_cache(REMEMBERED)
def _entries(text: str) -> tuple[Entry, ...]:
    listed = (filter(None, entry.split(":")) for entry in text.split(";"))
    return tuple(entry for devices in listed if (entry := tuple(map(_slice, devices))))


def _slice(text: str) -> VolcanoDevice | None:
    match = _DEVICE.fullmatch(text)
    units, cores = (int(match[2]), int(match[3])) if match else (0, 0)
    if match is None or units > MOST_UNITS or cores > 100:
        return None
    return VolcanoDevice(text=text, card=match[1], units=units, cores=cores)
