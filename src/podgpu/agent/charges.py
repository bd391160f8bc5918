"""The kernel's books of GPU memory, read each cycle and kept for as many readings as a difference must last."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from podgpu.ledger.charges import READINGS, compared, lasting, listed_memory
from podgpu.model import Charge, ContainerRef, Device, Holder
from podgpu.model.ports import ChargeSource

_Place = tuple[str, ContainerRef]


class MemoryCharges:
    def __init__(self, source: ChargeSource) -> None:
        self._source = source
        self._readings: dict[_Place, deque[Charge]] = {}

    async def compare(
        self, devices: Sequence[Device], holders: Mapping[int, Holder], named: Callable[[Holder], Holder]
    ) -> dict[str, tuple[Charge, ...]]:
        """Return the charges on each card, by its UUID. Nothing where the kernel keeps no such books.

        `named` adds the name of the container to what its cgroup says.
        """
        lines = {holder.cgroup for holder in holders.values()}
        # In a thread: whoever may make cgroups can make thousands.
        found = await asyncio.to_thread(self._source.charged, lines)
        amounts: dict[tuple[str, ContainerRef], int] = {}
        for charged in found or ():
            container = named(charged.holder).container
            if container is None:  # of no pod that any list has
                continue
            for card, number in charged.cards.items():
                amounts[card, container] = amounts.get((card, container), 0) + number
        last, self._readings = self._readings, {}
        if found is None:
            return {}
        return {device.gpu.uuid: self._on(device, holders, amounts, last) for device in devices}

    def _on(
        self,
        device: Device,
        holders: Mapping[int, Holder],
        amounts: Mapping[tuple[str, ContainerRef], int],
        last: Mapping[_Place, deque[Charge]],
    ) -> tuple[Charge, ...]:
        listed = listed_memory(device, holders)
        charges = []
        for (card, container), charged_bytes in sorted(amounts.items()):
            if card != device.gpu.pci_bus_id.upper():
                continue
            if not charged_bytes and not listed.containers.get(container):
                continue
            place = device.gpu.uuid, container
            readings = self._readings[place] = last.get(place) or deque(maxlen=READINGS)
            readings.append(compared(container, charged_bytes, listed))
            charges.append(lasting(readings))
        return tuple(charges)
