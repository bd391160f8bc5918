"""Processes are the witness: where a container may have one card or another, the one that it runs on is its own."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from podgpu.model import ContainerRef, Device, Holder
from podgpu.sharing.ambiguity import AmbiguityKey, AmbiguousClaims

Name: TypeAlias = tuple[str, str, str]  # namespace, pod, container
Seen: TypeAlias = dict[Name, dict[str, set[str]]]  # the cards a container runs on, by its pod's UID


class Witness:
    """Remembers what processes have shown: a container that pauses is not in doubt again."""

    def __init__(self) -> None:
        self._decided: dict[AmbiguityKey, int] = {}

    def settle(
        self, asked: Sequence[AmbiguousClaims], devices: Iterable[Device], holders: Mapping[int, Holder]
    ) -> dict[AmbiguousClaims, int]:
        """Return the right reading of each container that has been seen to run, now or before, on its cards alone."""
        if not asked:
            self._decided = {}
            return {}
        seen = _seen(devices, holders)
        found = {one: self._right(one, _cards(one.container, seen)) for one in asked}
        settled = {one: right for one, right in found.items() if right is not None}
        self._decided = {one.question: right for one, right in settled.items()}
        return settled

    def _right(self, one: AmbiguousClaims, cards: set[str]) -> int | None:
        """A container on cards of no reading, or of several, shows nothing: what it showed before stands."""
        fitting = [place for place, named in enumerate(one.cards) if cards and cards <= named]
        return fitting[0] if len(fitting) == 1 else self._decided.get(one.question)


def _seen(devices: Iterable[Device], holders: Mapping[int, Holder]) -> Seen:
    seen: Seen = {}
    for device in devices:
        for process in device.processes:
            holder = holders.get(process.pid)
            if process.kinds and holder and (who := holder.container):
                name = who.namespace, who.pod, who.container
                seen.setdefault(name, {}).setdefault(who.pod_uid, set()).add(device.gpu.uuid)
    return seen


def _cards(container: ContainerRef, seen: Seen) -> set[str]:
    """Another pod of the same name says nothing. Where a UID is not known, there must be only one of that name."""
    by_uid = seen.get((container.namespace, container.pod, container.container), {})
    if container.pod_uid in by_uid:
        return by_uid[container.pod_uid]
    is_likely = len(by_uid) == 1 and (not container.pod_uid or "" in by_uid)
    return next(iter(by_uid.values())) if is_likely else set()
