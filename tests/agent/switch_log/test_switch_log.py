"""Which cards' logs are read, and what becomes of them: pods, a real reader and the driver's device nodes, played."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace

from podgpu.agent import switch_log
from podgpu.agent.attribution import Attributed, Attribution
from podgpu.agent.switch_log import SwitchLogs
from podgpu.host.procfs import Procfs
from podgpu.ledger.cycle import CycleBooking, CycleBooks, Interval, Party
from podgpu.model import BusyWindow, Device, Gpu, PartStatus, Process, Reading, Slice, SpotLog, SwitchLog
from podgpu.sources.switches.watcher import SwitchWatcher
from tests.agent.stage import StillPods, check_card, write_proc
from tests.agent.test_attribution import GPU, OTHER, UID, cgroup, pod
from tests.fakeswitches.node import END, START, SwitchNode, record
from tests.sources.switches.conftest import node, preload

__all__ = ["node", "preload"]

CARD = Gpu(uuid=GPU, index=0, minor=0)
MS = 1_000_000


class Reader:
    """Notes which cards it is asked for, and has a log of each."""

    name = "switches"

    def __init__(self, *slices: Slice) -> None:
        self.asked: list[dict[str, int]] = []
        self.errors: Counter[str] = Counter()
        self._slices = slices

    async def read(self, cards: Mapping[str, int]) -> dict[str, SwitchLog]:
        self.asked.append(dict(cards))
        return {card: SwitchLog(begin_ns=0, end_ns=1, slices=self._slices) for card in cards}

    async def check(self, cards: Mapping[str, int]) -> dict[str, list[SpotLog]]:
        self.asked.append(dict(cards))
        return {card: [SpotLog(stands_for=6.6, slices=self._slices)] for card in cards}

    def status(self) -> PartStatus:
        return PartStatus(name=self.name, up=True)

    async def release(self, _: float) -> bool:
        return True

    async def close(self) -> None: ...


def sheet(*owners: str) -> CycleBooks:
    entries: dict[Party, CycleBooking] = {owner: CycleBooking(running=1) for owner in owners}
    return CycleBooks(gpu=GPU, bookings=entries, memory_bytes=None, busy_us=0, energy_mj=0)


async def test_a_log_is_read_only_while_a_card_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader()
    logs = SwitchLogs(reader, always=False)
    logs.note([sheet("host")])
    await logs.watch([Device(gpu=CARD)])
    logs.note([sheet("host", "container")])
    await logs.watch([Device(gpu=CARD)])
    monkeypatch.setattr(switch_log, "LINGER_SECONDS", 0.0)
    await logs.watch([Device(gpu=CARD)])
    assert reader.asked == [{}, {GPU: 0}, {}]


async def test_a_log_is_read_for_a_minute_after_a_card_was_last_shared() -> None:
    now = 1000.0
    reader = Reader()
    logs = SwitchLogs(reader, always=False, clock=lambda: now)
    logs.note([sheet("host", "container")])
    for now in (1000.0, 1059.9, 1060.0):  # noqa: B007 - the clock shows it
        await logs.watch([Device(gpu=CARD)])
    assert reader.asked == [{GPU: 0}, {GPU: 0}, {}]


async def test_a_server_of_mps_is_no_second_owner() -> None:
    reader = Reader()
    logs = SwitchLogs(reader, always=False)
    logs.note([sheet("host", "overhead")])
    await logs.watch([Device(gpu=CARD)])
    assert reader.asked == [{}]


async def test_on_a_card_with_instances_or_without_a_node_there_is_no_log_to_read() -> None:
    reader = Reader()
    logs = SwitchLogs(reader, always=True)
    await logs.watch([Device(gpu=replace(CARD, mig_enabled=True)), Device(gpu=replace(CARD, minor=None))])
    assert reader.asked == [{}]


async def test_whoever_was_on_the_card_is_looked_up_even_if_no_list_had_it() -> None:
    logs = SwitchLogs(Reader(Slice(7, 0, 1), Slice(8, 0, 1), Slice(0, 0, 1), Slice(-1, 0, 1)), always=True)
    (found,) = await logs.watch([Device(gpu=CARD, processes=(Process(pid=7, kinds=("compute",)),))])
    assert [process.pid for process in found.processes] == [7, 8]
    assert found.processes[1].kinds == ()


async def test_without_windows_the_cycle_is_one() -> None:
    logs = SwitchLogs(Reader(), always=True)
    device = Device(gpu=CARD, at=time.monotonic())
    await logs.watch([device])
    found = logs.evidence(device, Interval(elapsed_us=5_000_000, busy_us=2_000_000))
    assert found
    assert not found.windows  # it is not over yet, by the log
    (kept,) = logs._buffers[GPU].windows
    assert kept.end_ns - kept.begin_ns == 5_000_000_000
    assert kept.busy_ns == 2_000_000_000


class Scene:
    """Two pods take turns on a card, three milliseconds for one, one for the other; the log is played as it comes."""

    def __init__(self, folder: Path, node: SwitchNode, *, checks_only: bool = False) -> None:
        proc = folder / "proc"
        write_proc(proc, 70, cgroup(UID, "a"))
        write_proc(proc, 80, cgroup(OTHER, "b"))
        begin, sequence, records = time.time_ns() - 2_000_000_000, count(1), []
        for turn in range(15_000):  # a minute: longer than the test may take
            at = begin + turn * 4 * MS
            for pid, first, last in ((70, 0.0, 2.9), (80, 3.0, 3.9)):
                records.append(record(START, pid, at + round(first * MS), sequence=next(sequence)))
                records.append(record(END, pid, at + round(last * MS), sequence=next(sequence)))
        node.script(begin_ago_ns=60_000_000_000)  # however late the child opens the log
        node.play(records)
        self.watcher = SwitchWatcher()
        self.switch_logs = SwitchLogs(self.watcher, always=False, checks_only=checks_only)
        self.attribution = Attribution(
            interval=0.5,
            pod_sources=[StillPods((pod(), pod(OTHER, "batch", "b")))],
            processes=Procfs(proc),
            switch_logs=self.switch_logs,
        )
        self._last = time.time_ns() - 400 * MS

    async def cycle(self) -> Attributed:
        """The card is always busy; samples name the first pod alone."""
        now, windows = time.time_ns(), []
        while self._last + 200 * MS <= now:
            windows.append(BusyWindow(self._last, self._last + 200 * MS, 195 * MS))
            self._last += 200 * MS
        processes = [Process(pid=pid, kinds=("compute",), memory_bytes=1 << 30, sm_busy_us=0) for pid in (70, 80)]
        processes[0] = replace(processes[0], sm_busy_us=400_000)
        device = Device(
            gpu=CARD,
            at=time.monotonic(),
            readings=(
                Reading("graphics_engine_active_ratio", 0.975),
                Reading("energy_joules_total", now / 1e9),
            ),
            processes=tuple(processes),
            windows=tuple(windows),
        )
        return await self.attribution.attribute([device], time.time())


async def test_what_pods_did_is_booked_by_the_log(node: SwitchNode, tmp_path: Path) -> None:
    scene = Scene(tmp_path, node)
    snapshot = await scene.cycle()
    assert not node.is_bound()  # nobody knew yet that the card is shared
    share = pytest.approx(0.975 * 0.9 / 3.8, abs=0.02)
    turns = count()
    ratios: list[float | None] = []
    while next(turns) < 6 or share not in ratios:  # what the log does not show in time is booked by samples
        await asyncio.sleep(0.25)
        snapshot = await scene.cycle()
        ratios = [tenant.booking.sm_ratio for tenant in snapshot.cards[0].tenants]
    (card,) = snapshot.cards
    assert card.balance
    check_card(card, card.balance)
    chat, batch = sorted(card.tenants, key=lambda tenant: tenant.container.pod != "chat")
    assert (chat.booking.method, batch.booking.method) == ("resident", "resident")
    assert batch.booking.sm_ratio == share
    assert chat.booking.resident_us == pytest.approx((batch.booking.resident_us or 0) * 2.9 / 0.9, rel=0.05)
    assert (card.balance.switches or 0) > 100
    assert card.balance.switching_ratio == pytest.approx(0.05, abs=0.03)
    assert not scene.attribution.errors
    (status,) = [part for part in snapshot.parts if part.name == "switches"]
    assert status.up
    assert await scene.attribution.release(60)
    assert not node.is_bound()
    assert (await scene.cycle()).cards[0].tenants[0].booking.method == "measured"
    await scene.attribution.close()


async def test_a_check_leaves_the_samples_to_divide_and_the_log_closed(node: SwitchNode, tmp_path: Path) -> None:
    scene = Scene(tmp_path, node, checks_only=True)
    snapshot = await scene.cycle()
    while not scene.switch_logs.checks(GPU):
        await asyncio.sleep(0.1)
        snapshot = await scene.cycle()
        assert not scene.switch_logs.open
    (check,) = scene.switch_logs.checks(GPU) or ()
    assert {piece.pid for piece in check.slices} == {70, 80}
    assert node.wait_until_free()
    assert {tenant.booking.method for tenant in snapshot.cards[0].tenants} == {"measured"}
    assert {tenant.booking.resident_us for tenant in snapshot.cards[0].tenants} == {None}
    await scene.attribution.close()


async def test_checks_are_asked_for_while_a_card_is_shared() -> None:
    reader = Reader(Slice(7, 0, 1))
    logs = SwitchLogs(reader, always=False, checks_only=True)
    await logs.watch([Device(gpu=CARD)])
    assert logs.checks(GPU) is None
    logs.note([sheet("host", "container")])
    (found,) = await logs.watch([Device(gpu=CARD)])
    assert reader.asked == [{}, {GPU: 0}]
    assert [process.pid for process in found.processes] == [7]
    assert len(logs.checks(GPU) or ()) == 1
    assert logs.evidence(found, Interval(elapsed_us=1)) is None


@pytest.mark.parametrize("checks_only", [False, True])
async def test_a_card_that_brings_its_checks_is_not_read_again(*, checks_only: bool) -> None:
    reader = Reader(Slice(7, 0, 1))
    logs = SwitchLogs(reader, always=True, checks_only=checks_only)
    brought = (SpotLog(stands_for=6.6, slices=(Slice(8, 0, 1),)),)
    (found,) = await logs.watch([Device(gpu=CARD, checks=brought)])
    assert reader.asked == [{}]
    assert logs.checks(GPU) == brought
    assert [process.pid for process in found.processes] == [8]
    assert logs.evidence(found, Interval(elapsed_us=1)) is None
    await logs.watch([Device(gpu=CARD, checks=())])
    assert logs.checks(GPU) == ()


async def test_without_a_log_looks_go_on(node: SwitchNode, tmp_path: Path) -> None:
    scene = Scene(tmp_path, node)
    node.script(version_branch=600)
    snapshot = await scene.cycle()
    while not (_log_fault(snapshot) and all(tenant.booking.method for tenant in snapshot.cards[0].tenants)):
        await asyncio.sleep(0.02)
        snapshot = await scene.cycle()
    (card,) = snapshot.cards
    assert card.balance
    check_card(card, card.balance)
    assert {tenant.booking.method for tenant in card.tenants} == {"measured"}
    assert card.balance.switches is None
    assert _log_fault(snapshot) == "unknown_branch"
    await scene.attribution.close()


def _log_fault(found: Attributed) -> str:
    (status,) = [part for part in found.parts if part.name == "switches"]
    return status.fault.reason if status.fault else ""
