import asyncio
import time
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podgpu.catalog import CATALOG, device_rows
from podgpu.catalog.row import Kind, Metric, Worth
from podgpu.model import Device, Reading, Report
from podgpu.sources.protocols import Source
from podgpu.sources.simulator.scenario import CARDS
from podgpu.sources.simulator.source import Simulator
from podgpu.sources.simulator.timeline import ROUND, Activity, CardTimeline, ReadingWindow, RoundCounter

Values = dict[tuple[str, ...], float]

WEEK = 7 * 86400
START = 5000.0
BORN = 1.7e9
MIG_CARD = 3
XID_CARD = 2
HOT_CARD = 1
TIMES = st.integers(0, WEEK * 1000).map(lambda milliseconds: milliseconds / 1000)
SECONDS = st.integers(0, WEEK)
COUNTERS = {(row.name, *row.label_values) for row in device_rows() if row.kind is Kind.COUNTER}


class Clock:
    now = START

    def __call__(self) -> float:
        return self.now


def play(times: Iterable[float], seed: int = 7) -> list[Report]:
    """What a simulator reports at these times since its start."""
    clock = Clock()
    simulator = Simulator(seed=seed, clock=clock, wall=lambda: BORN)

    async def reports() -> list[Report]:
        told = []
        for elapsed in times:
            clock.now = START + elapsed
            told.append(await simulator.read())
        await simulator.close()
        return told

    return asyncio.run(reports())


@cache
def _shared() -> tuple[Simulator, Clock]:
    clock = Clock()
    return Simulator(seed=7, clock=clock, wall=lambda: BORN), clock


def report(elapsed: float) -> Report:
    """What a simulator reports a second after it was read; its XID events may have been reported already."""
    simulator, clock = _shared()
    for at in (elapsed - 1, elapsed):
        clock.now = START + at
        told = asyncio.run(simulator.read())
    return told


def values(readings: Iterable[Reading]) -> Values:
    found = [((reading.metric, *reading.labels), reading.value) for reading in readings]
    assert len(dict(found)) == len(found), "a reading is told twice"
    return dict(found)


def key(row: Metric) -> tuple[str, ...]:
    return (row.name, *row.label_values)


def encoded(devices: tuple[Device, ...]) -> bytes:
    return msgspec.json.encode(devices)


def test_it_is_a_source_and_says_that_it_is_a_demo() -> None:
    source: Source = Simulator(seed=1)
    assert source.name == "simulator"
    assert source.demo


def test_same_seed_and_times_give_the_same_bytes() -> None:
    times = [0.0, 1.5, 90.0, 4000.25]
    assert msgspec.json.encode(play(times)) == msgspec.json.encode(play(times))


def test_another_seed_gives_other_numbers_on_the_same_node() -> None:
    first, second = play([30.0], seed=1)[0], play([30.0], seed=2)[0]
    assert encoded(first.devices) != encoded(second.devices)
    assert [device.gpu for device in first.devices] == [device.gpu for device in second.devices]


async def test_there_is_nothing_to_release() -> None:
    assert await Simulator(seed=1).release(60)


def test_numbers_move_within_a_few_seconds() -> None:
    first, second = ([device.readings for device in told.devices[:MIG_CARD]] for told in play([100.0, 105.0]))
    assert all(before != after for before, after in zip(first, second, strict=True))


@settings(max_examples=10, deadline=None)
@given(st.lists(TIMES, min_size=3, max_size=6, unique=True).map(sorted))
def test_means_over_parts_of_a_time_make_up_its_mean(times: list[float]) -> None:
    often, once = play(times), play([times[0], times[-1]])[-1]
    for index, whole in enumerate(once.devices):
        parts = [told.devices[index] for told in often[1:]]
        for place, process in enumerate(whole.processes):
            busy = sum(part.processes[place].sm_busy_us or 0 for part in parts)
            assert busy == (process.sm_busy_us or 0)
        gained = [
            values(part.readings)["power_watts",] * (end - start)
            for part, (start, end) in zip(parts, pairwise(times), strict=True)
        ]
        mean = values(whole.readings)["power_watts",]
        assert sum(gained) == pytest.approx(mean * (times[-1] - times[0]), abs=0.01)


@settings(max_examples=10, deadline=None)
@given(st.lists(TIMES, min_size=2, max_size=5, unique=True).map(sorted))
def test_reads_in_between_change_no_counter_and_no_memory(times: list[float]) -> None:
    often, once = (told[-1] for told in (play(times), play(times[-1:])))
    for device, other in zip(often.devices, once.devices, strict=True):
        old, new = values(device.readings), values(other.readings)
        standing = {name for name in old if name in COUNTERS or name == ("memory_used_bytes",)}
        assert {name: old[name] for name in standing} == {name: new[name] for name in standing}


def test_a_week_later_costs_no_more() -> None:
    clock = Clock()
    simulator = Simulator(seed=7, clock=clock)
    clock.now = START + WEEK
    began = time.process_time()  # how busy the machine is makes no difference
    asyncio.run(simulator.read())
    assert time.process_time() - began < 5


@settings(max_examples=20, deadline=None)
@given(TIMES)
def test_memory_adds_up(elapsed: float) -> None:
    for device in report(elapsed).devices:
        held = sum(process.memory_bytes or 0 for process in device.processes)
        found = values(device.readings)
        parts = [found["memory_used_bytes",]]
        for instance in device.instances:
            inside = values(instance.readings)
            assert_memory_identity(inside)
            parts.append(-inside["memory_used_bytes",])
        assert_memory_identity(found)
        assert 0 < found["memory_used_bytes",] - held < 128 << 20
        if device.instances:
            assert sum(parts) == 0


def assert_memory_identity(found: Values) -> None:
    used, free, reserved = (found[f"memory_{part}_bytes",] for part in ("used", "free", "reserved"))
    assert min(used, free) > 0
    assert used + free + reserved == found["memory_total_bytes",]


@settings(max_examples=20, deadline=None)
@given(TIMES)
def test_ratios_are_ratios(elapsed: float) -> None:
    for device in report(elapsed).devices:
        readings = [*device.readings, *(each for part in device.instances for each in part.readings)]
        for reading in readings:
            if reading.metric.endswith("_ratio"):
                assert 0 <= reading.value <= 1, reading


@settings(max_examples=20, deadline=None)
@given(TIMES)
def test_processes_use_no_more_than_their_card(elapsed: float) -> None:
    for device in report(elapsed).devices:
        if device.gpu.mig_enabled:
            continue
        found = values(device.readings)
        for ratio, row in (
            ("sm_ratio", "utilization_ratio"),
            ("memory_ratio", "memory_utilization_ratio"),
            ("decoder_ratio", "decoder_utilization_ratio"),
        ):
            each = [getattr(process, ratio) for process in device.processes]
            assert sum(each) == pytest.approx(found[row,], abs=0.0051)  # the card's is in whole percent
        busy = sum(process.sm_busy_us or 0 for process in device.processes) / 1e6
        assert busy - 0.0001 - 1e-9 <= found["graphics_engine_active_ratio",] <= busy + 1e-9


@settings(max_examples=20, deadline=None)
@given(TIMES)
def test_profiling_agrees_with_utilization(elapsed: float) -> None:
    for device in report(elapsed).devices:
        found = values(device.readings)
        active = found["graphics_engine_active_ratio",]
        assert found["tensor_active_ratio",] <= found["sm_active_ratio",] <= active
        if not device.gpu.mig_enabled:
            assert active == pytest.approx(found["utilization_ratio",], abs=0.0101)


@settings(max_examples=10, deadline=None)
@given(st.lists(TIMES, min_size=2, max_size=6).map(sorted))
def test_counters_never_fall(times: list[float]) -> None:
    for before, after in pairwise(play(times)):
        for earlier, later in zip(before.devices, after.devices, strict=True):
            old, new = values(earlier.readings), values(later.readings)
            assert all(old[name] <= new[name] for name in COUNTERS & old.keys())


@settings(max_examples=10, deadline=None)
@given(st.lists(TIMES, min_size=2, max_size=20, unique=True).map(sorted))
def test_energy_is_the_integral_of_power(times: list[float]) -> None:
    told = play(times)
    for index in range(len(CARDS)):
        found = [values(reading.devices[index].readings) for reading in told]
        for (start, end), (before, after) in zip(pairwise(times), pairwise(found), strict=True):
            gained = after["energy_joules_total",] - before["energy_joules_total",]
            # Float64 tells joules this large apart to about a tenth of a millijoule.
            assert gained == pytest.approx(after["power_watts",] * (end - start), abs=0.001)


@settings(max_examples=10, deadline=None)
@given(SECONDS)
def test_traffic_counters_rise_by_their_rates(start: int) -> None:
    before, after = play([start, start + 1])
    for earlier, later in zip(before.devices, after.devices, strict=True):
        old, new = values(earlier.readings), values(later.readings)
        for way in ("pcie_transmit", "pcie_receive", "nvlink_transmit", "nvlink_receive"):
            gained = new[f"{way}_bytes_total",] - old[f"{way}_bytes_total",]
            assert gained == pytest.approx(new[f"{way}_bytes_per_second",], abs=1024)


@settings(max_examples=20, deadline=None)
@given(SECONDS)
def test_power_clocks_and_heat_follow_load(elapsed: int) -> None:
    for device in report(elapsed).devices:
        found = values(device.readings)
        assert 84 <= found["power_watts",] <= found["power_limit_watts",]
        assert 30 <= found["temperature_celsius", "gpu"] <= (70 if device.gpu.index != HOT_CARD else 95)
        assert found["power_instant_watts",] == pytest.approx(found["power_watts",])
        idle = found["graphics_engine_active_ratio",] == 0
        assert idle == (found["power_watts",] <= 86) == (found["clock_hertz", "sm"] == 345e6)
        assert found["clock_event", "idle"] == idle
        if found["clock_event", "software_power_cap"]:
            assert found["power_watts",] >= 690


def test_throttled_time_passes_while_the_power_cap_holds() -> None:
    told = [values(reading.devices[0].readings) for reading in play(range(60))]
    capped = sum(each["clock_event", "software_power_cap"] for each in told[1:])
    total = ("throttle_seconds_total", "power")
    assert capped > 0
    assert told[-1][total] - told[0][total] == pytest.approx(capped)


def test_one_card_is_slowed_down_by_heat_and_no_other() -> None:
    first, last = play([0, ROUND])
    total = ("throttle_seconds_total", "thermal")
    hot = [
        values(after.readings)[total] - values(before.readings)[total]
        for before, after in zip(first.devices, last.devices, strict=True)
    ]
    assert [seconds > ROUND / 4 for seconds in hot] == [index == HOT_CARD for index in range(len(CARDS))]
    assert sum(hot) == hot[HOT_CARD]


def test_every_reading_is_in_the_catalog() -> None:
    rows = {key(row): row for row in device_rows()}
    for device in report(10.0).devices:
        assert values(device.readings).keys() <= rows.keys()
        for instance in device.instances:
            found = values(instance.readings)
            assert all(rows[name].mig for name in found)


def test_every_core_row_that_is_read_is_given() -> None:
    wanted = {key(row) for row in device_rows() if row.read and row.worth.value >= Worth.CORE.value}
    # A partitioned card does not report these.
    untold = {("utilization_ratio",), ("memory_utilization_ratio",)}
    for device in report(10.0).devices:
        missing = wanted - values(device.readings).keys()
        assert missing == (untold if device.gpu.mig_enabled else set())


def test_every_core_row_of_an_instance_is_given() -> None:
    wanted = {key(row) for row in CATALOG if row.mig and row.worth.value >= Worth.CORE.value}
    instances = report(10.0).devices[MIG_CARD].instances
    assert len(instances) == 5
    assert all(wanted <= values(instance.readings).keys() for instance in instances)


def test_processes_of_a_partitioned_card_name_their_instance_and_no_ratio() -> None:
    device = report(10.0).devices[MIG_CARD]
    instances = {each.mig.gpu_instance_id for each in device.instances}
    assert {process.gpu_instance_id for process in device.processes} < instances
    assert all(process.compute_instance_id == 0 for process in device.processes)
    assert all(process.sm_ratio is None and process.memory_ratio is None for process in device.processes)


def test_some_instances_are_busy_and_some_never() -> None:
    most: dict[int, float] = {}
    for told in play(range(0, ROUND, 5)):
        for instance in told.devices[MIG_CARD].instances:
            active = values(instance.readings)["sm_active_ratio",]
            number = instance.mig.gpu_instance_id
            most[number] = max(active, most.get(number, 0.0))
    assert sorted(value > 0 for value in most.values()) == [False, False, True, True, True]


def test_the_idle_holder_holds_memory_and_does_nothing() -> None:
    for told in play([0.0, 300.0, 900.0]):
        found = values(told.devices[7].readings)
        assert found["utilization_ratio",] == 0
        assert found["memory_used_bytes",] >= 60 << 30


def test_corrected_memory_errors_are_on_one_card() -> None:
    total = ("ecc_errors_total", "corrected", "volatile")
    found = [values(device.readings)[total] for device in report(0.0).devices]
    assert sorted(found) == [0, 0, 0, 0, 0, 0, 0, 3]


def test_an_xid_comes_soon_and_again_every_few_minutes() -> None:
    told = play([0.0, 2.9, 3.0, 3.1, 500.0, 900.0, ROUND + 100.0])
    assert [len(report.events) for report in told] == [0, 0, 1, 0, 1, 1, 1]
    events = [event for report in told for event in report.events]
    assert {(event.uuid, event.xid) for event in events} == {(CARDS[XID_CARD].uuid, 31)}
    assert [event.at - BORN for event in events] == [3, 420, 820, ROUND + 3]


@settings(max_examples=10, deadline=None)
@given(st.lists(st.floats(0, 5 * ROUND), max_size=8).map(sorted))
def test_however_it_is_read_each_xid_is_told_once(times: list[float]) -> None:
    often = [event for report in play([*times, 5 * ROUND]) for event in report.events]
    assert often == list(play([5 * ROUND])[0].events)


def test_the_cast_is_sound() -> None:
    processes = [process for card in CARDS for process in card.processes]
    assert len({process.pid for process in processes}) == len(processes)
    assert [card.index for card in CARDS] == list(range(8))
    assert all(process.tenant.startswith("host:") or process.tenant.count("/") == 2 for process in processes)
    assert all(ROUND % process.load.every == 0 for process in processes)
    for card in CARDS:
        assert not (card.logs_switches and card.checks_switches)
        assert sum(process.keeps_time for process in card.processes) <= 1
        instances = {instance.gpu_instance_id for instance in card.instances}
        assert all(
            (process.instance in instances) if instances else (process.instance is None) for process in card.processes
        )


def test_uuids_differ() -> None:
    devices = report(0.0).devices
    uuids = [device.gpu.uuid for device in devices]
    uuids += [instance.mig.uuid for device in devices for instance in device.instances]
    assert len(set(uuids)) == len(uuids) == 13


def test_a_meter_counts_rounds_and_parts_of_seconds() -> None:
    meter = RoundCounter([2] * (ROUND - 1) + [10], start=5)
    assert [meter.at(0.0), meter.at(1.5), meter.at(ROUND - 0.5)] == [5, 8, 5 + 2 * (ROUND - 1) + 5]
    assert meter.at(3.0 * ROUND) == 5 + 3 * (2 * (ROUND - 1) + 10)


def seconds(timeline: CardTimeline) -> Iterator[tuple[Activity, ...]]:
    return (timeline.activities(ReadingWindow(second, second + 1)) for second in range(ROUND))


def test_crowded_processes_share_what_there_is() -> None:
    timeline = CardTimeline(CARDS[4], seed=7)
    assert max(sum(activity.load for activity in activities) for activities in seconds(timeline)) == pytest.approx(
        0.99, abs=1e-5
    )


def test_instances_do_not_crowd_each_other() -> None:
    timeline = CardTimeline(CARDS[MIG_CARD], seed=7)
    assert max(sum(activity.load for activity in activities) for activities in seconds(timeline)) > 1.5
