"""Of a card that was away for over an hour, no part of the agent keeps anything."""

import pytest

from podgpu.agent import counters, loop
from podgpu.agent.attribution import Attribution
from podgpu.agent.counters import MOST_CARDS, SeenCards
from podgpu.agent.loop import Agent
from podgpu.model import Card, Device, Fault, Gpu, GuestCard, Reading, Report, XidEvent
from tests.agent.test_attribution import Kubelet
from tests.tree import SETTINGS

HOUR = 3600.0
INTERVAL = 5.0


def test_a_card_is_forgotten_after_an_hour_and_not_before() -> None:
    seen = SeenCards()
    seen.note(["GPU-1", "GPU-2"], 0.0)
    assert seen.note(["GPU-2"], HOUR) == []
    assert seen.note(["GPU-2"], HOUR + 1) == ["GPU-1"]
    assert seen.note(["GPU-2"], HOUR + 2) == [], "it is forgotten once"


def test_a_card_that_is_back_is_not_forgotten() -> None:
    seen = SeenCards()
    seen.note(["GPU-1"], 0.0)
    assert seen.note(["GPU-1"], 2 * HOUR) == []


def test_of_too_many_cards_those_longest_unseen_are_forgotten_first() -> None:
    seen = SeenCards(most=3)
    seen.note(["a", "b"], 0.0)
    seen.note(["b"], 1.0)
    assert seen.note(["c", "d"], 2.0) == ["a"]


class Wandering:
    """A source with one card that stays and one that comes and goes."""

    name, demo = "nvml", False

    def __init__(self, clock: "Clock") -> None:
        self.clock = clock
        self.devices: list[str] = ["GPU-1", "GPU-2"]
        self.joules = 1000.0
        self.events: tuple[XidEvent, ...] = (XidEvent(uuid="GPU-1", xid=79, at=1.0),)
        self.fault: Fault | None = None

    async def read(self) -> Report:
        events, self.events = self.events, ()
        return Report(devices=tuple(map(self._device, self.devices)), events=events)

    def _device(self, uuid: str) -> Device:
        gpu = Gpu(uuid=uuid, index=int(uuid[-1]), pci_bus_id=f"00000000:0{uuid[-1]}:00.0")
        if self.fault and uuid == "GPU-1":
            return Device(gpu=gpu, fault=self.fault)
        readings = (Reading("energy_joules_total", self.joules), Reading("utilization_ratio", 1.0))
        return Device(gpu=gpu, at=self.clock.now, readings=readings)

    async def release(self, seconds: float) -> bool:
        return True

    async def close(self) -> None:
        return


class Clock:
    """The time of the agent's loop."""

    def __init__(self) -> None:
        self.now = 10_000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now


class Stage:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = Clock()
        monkeypatch.setattr(loop, "time", self.clock)
        self.source = Wandering(self.clock)
        attribution = Attribution(interval=INTERVAL, allocations=Kubelet(chat="GPU-1"))
        self.agent = Agent(self.source, node="n", interval=INTERVAL, settings=SETTINGS, attribution=attribution)

    async def cycle(self, joules: float, seconds: float = INTERVAL) -> None:
        self.clock.now += seconds
        self.source.joules = joules
        await self.agent.cycle()

    async def away(self, seconds: float) -> Card:
        """The card counts two readings, is away, and comes back with its counter begun anew."""
        await self.cycle(1000.0)
        await self.cycle(2000.0)
        self.source.devices = ["GPU-2"]
        await self.cycle(2000.0, seconds - INTERVAL)
        self.source.devices = ["GPU-1", "GPU-2"]
        await self.cycle(10.0)
        await self.cycle(11.0)
        await self.agent.close()
        return next(card for card in self.agent.snapshot.cards if card.gpu.uuid == "GPU-1")


def known(card: Card) -> tuple[float, int, int, bool]:
    """The card's counter, the energy that its books hold, that of its tenant, and whether its XID is known."""
    values = {reading.metric: reading.value for reading in card.readings}
    (tenant,) = card.tenants
    assert card.balance
    return (
        values["energy_joules_total"],
        card.balance.energy_mj,
        tenant.booking.allocated_us,
        "xid_last_code" in values,
    )


async def test_a_card_that_was_away_for_an_hour_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    counter, booked, allocated, xid = known(await Stage(monkeypatch).away(HOUR))
    # The counter carries on from 2000 J: 10 J came in the gap, which is nobody's, and 1 J after it.
    assert (counter, booked, allocated, xid) == (2011.0, 1_011_000, 2 * INTERVAL * 1e6, True)


async def test_of_one_that_was_away_for_longer_nobody_keeps_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    counter, booked, allocated, xid = known(await Stage(monkeypatch).away(HOUR + 2 * INTERVAL))
    assert (counter, booked, allocated, xid) == (11.0, 1_000, INTERVAL * 1e6, False)


async def test_a_card_that_is_there_and_silent_is_forgotten_by_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch)
    await stage.cycle(1000.0)
    await stage.cycle(2000.0)
    stage.source.fault = Fault(reason="lost")
    for _ in range(4):
        await stage.cycle(2000.0, HOUR)
    silent = next(card for card in stage.agent.snapshot.cards if card.gpu.uuid == "GPU-1")
    await stage.agent.close()
    assert silent.balance and silent.balance.energy_mj == 1_000_000
    assert [reading.metric for reading in silent.readings if reading.metric == "xid_last_code"]


async def test_invented_cards_fill_nobodys_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch)
    for cycle in range(10):
        stage.source.devices = [f"GPU-{1000 * cycle + number}" for number in range(64)]
        await stage.cycle(float(cycle))
    attribution = stage.agent._attribution
    assert attribution
    kept = (stage.agent._counters._pasts, attribution._books.cards, attribution._intervals._last)
    assert [len(by_card) for by_card in kept] == [MOST_CARDS] * 3 == [counters.MOST_CARDS] * 3
    await stage.agent.close()


async def test_a_card_that_the_source_no_longer_lists_is_down_until_it_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch)
    await stage.cycle(1000.0)
    stage.source.devices = ["GPU-2"]
    await stage.cycle(1000.0)
    faults = {card.gpu.uuid: card.fault and card.fault.reason for card in stage.agent.snapshot.cards}
    assert faults == {"GPU-1": "gone", "GPU-2": None}
    await stage.cycle(1000.0, HOUR + 1)
    assert [card.gpu.uuid for card in stage.agent.snapshot.cards] == ["GPU-2"]
    await stage.agent.close()


async def test_a_card_that_was_given_to_a_virtual_machine_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch)
    await stage.cycle(1000.0)
    stage.source.devices = ["GPU-2"]
    guest = GuestCard(pci_bus_id="00000000:01:00.0", driver="vfio-pci")
    stage.agent._guests = lambda: (guest,)
    await stage.cycle(1000.0)
    snapshot = stage.agent.snapshot
    assert [card.gpu.uuid for card in snapshot.cards] == ["GPU-2"] and snapshot.guests == (guest,)
    assert snapshot.insight and (snapshot.insight.sums.gpus, snapshot.insight.sums.guest_gpus) == (1, 1)
    await stage.agent.close()
