"""What a card did between two readings, and what cannot be known of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.agent.counters import IntervalMeter
from podgpu.ledger.cycle import Interval
from podgpu.model import Device, Gpu, Reading

INTERVAL = 5.0
LIMIT = 700.0


def device(at: float, **readings: float) -> Device:
    return Device(
        gpu=Gpu(uuid="GPU-1", index=0),
        at=at,
        readings=tuple(Reading(name, value) for name, value in readings.items()),
    )


def joules(at: float, energy: float, **more: float) -> Device:
    return device(at, energy_joules_total=energy, power_limit_watts=LIMIT, **more)


def between(*devices: Device) -> Interval:
    """The interval that the last of these readings ends."""
    meter = IntervalMeter(INTERVAL)
    *_, last = [meter.interval(card) for card in devices]
    assert last is not None
    return last


def test_the_first_reading_ends_no_interval() -> None:
    assert IntervalMeter(INTERVAL).interval(joules(0.0, 10.0)) is None


def test_energy_is_the_counters_increase() -> None:
    found = between(joules(100.0, 10.0), joules(105.0, 510.5, utilization_ratio=0.4))
    assert (found.elapsed_us, found.energy_mj, found.busy_us) == (5_000_000, 500_500, 2_000_000)
    assert not found.is_gap


def test_activity_is_the_profilers_where_there_is_one() -> None:
    found = between(joules(0.0, 0.0), joules(5.0, 1.0, utilization_ratio=1.0, graphics_engine_active_ratio=0.5))
    assert found.busy_us == 2_500_000


def test_without_a_counter_the_power_meter_tells() -> None:
    assert between(device(0.0), device(5.0, power_watts=100.0)).energy_mj == 500_000


def test_with_neither_nothing_is_known() -> None:
    found = between(device(0.0), device(5.0))
    assert (found.energy_mj, found.busy_us) == (None, None)


@pytest.mark.parametrize("after", [3.0, 10.0 + 2 * LIMIT * INTERVAL])
def test_a_counter_that_fell_or_leapt_is_not_believed(after: float) -> None:
    found = between(joules(0.0, 10.0), joules(5.0, after, power_watts=100.0))
    assert found.energy_mj == 500_000


@pytest.mark.parametrize(("seconds", "is_gap"), [(3 * INTERVAL, False), (3 * INTERVAL + 0.1, True)])
def test_a_silence_of_more_than_three_intervals_is_a_gap(seconds: float, *, is_gap: bool) -> None:
    assert between(joules(0.0, 0.0), joules(seconds, 1.0)).is_gap is is_gap


def test_of_a_gap_the_energy_is_known_and_the_use_is_not() -> None:
    found = between(joules(0.0, 0.0), joules(3600.0, 360_000.0, power_watts=600.0, utilization_ratio=1.0))
    assert (found.is_gap, found.energy_mj, found.busy_us) == (True, 360_000_000, None)


def test_the_power_of_now_says_nothing_about_a_gap() -> None:
    assert between(device(0.0), device(3600.0, power_watts=600.0)).energy_mj is None
    assert between(joules(0.0, 10.0), joules(3600.0, 3.0, power_watts=600.0)).energy_mj is None


def test_idle_power_is_the_least_that_was_seen_while_nothing_ran() -> None:
    quiet = joules(0.0, 0.0, power_watts=90.0, utilization_ratio=0.0)
    quieter = joules(5.0, 1.0, power_watts=80.0, utilization_ratio=0.0)
    busy = joules(10.0, 2.0, power_watts=20.0, utilization_ratio=0.5)
    assert between(quiet, quieter, busy).idle_mj == 400_000


@pytest.mark.parametrize("watts", [0.0, -1.0])
def test_a_card_that_draws_nothing_says_nothing_about_its_idle_power(watts: float) -> None:
    nothing = joules(0.0, 0.0, power_watts=watts, utilization_ratio=0.0)
    quiet = joules(5.0, 1.0, power_watts=80.0, utilization_ratio=0.0)
    assert between(nothing, joules(5.0, 1.0)).idle_mj == round(0.12 * LIMIT * 5 * 1000)
    assert between(nothing, quiet, joules(10.0, 2.0)).idle_mj == 400_000
    assert between(quiet, joules(10.0, 2.0, power_watts=watts, utilization_ratio=0.0)).idle_mj == 400_000


def test_before_that_it_is_a_usual_share_of_the_limit() -> None:
    assert between(joules(0.0, 0.0), joules(5.0, 1.0)).idle_mj == round(0.12 * LIMIT * 5 * 1000)


@pytest.mark.parametrize(("seconds", "is_enough"), [(0.01, True), (0.009_999, False)])
def test_ten_milliseconds_are_enough_to_measure_in(seconds: float, is_enough: bool) -> None:
    meter = IntervalMeter(INTERVAL)
    meter.interval(joules(0.0, 0.0))
    assert (meter.interval(joules(seconds, 1.0)) is not None) == is_enough


def test_a_reading_that_comes_twice_loses_nothing() -> None:
    meter = IntervalMeter(INTERVAL)
    meter.interval(joules(0.0, 0.0))
    assert meter.interval(joules(0.001, 0.5)) is None
    found = meter.interval(joules(5.0, 100.0))
    assert found is not None
    assert found.energy_mj == 100_000


@given(
    st.lists(st.integers(1, 300), min_size=2, max_size=20, unique=True),
    st.data(),
)
def test_readings_out_of_order_book_no_time_twice(times: list[int], data: st.DataObject) -> None:
    """A card draws 100 W for as long as it takes, and some readings come late."""
    ordered = sorted(times)
    late = {at: at + data.draw(st.integers(0, 50)) for at in ordered}
    comes = sorted(ordered, key=lambda at: late[at])
    meter = IntervalMeter(300.0)
    intervals = [meter.interval(joules(float(at), 100.0 * at, power_watts=100.0)) for at in comes]
    booked = [interval for interval in intervals if interval is not None]
    seconds = max(comes) - comes[0]
    assert sum(interval.elapsed_us for interval in booked) == seconds * 1_000_000
    assert sum(interval.energy_mj or 0 for interval in booked) == seconds * 100_000


def test_a_reading_of_just_before_is_booked_already() -> None:
    meter = IntervalMeter(10.0)
    readings = ((0.0, 0.0), (10.0, 1000.0), (9.4, 940.0), (20.0, 2000.0), (30.0, 3000.0))
    intervals = [meter.interval(joules(at, energy)) for at, energy in readings]
    assert sum(interval.energy_mj or 0 for interval in intervals if interval) == 3_000_000
    assert sum(interval.elapsed_us for interval in intervals if interval) == 30_000_000


@pytest.mark.parametrize(("seconds", "is_late"), [(59.9, True), (60.0, False)])
def test_a_reading_of_long_before_is_that_of_another_clock(seconds: float, is_late: bool) -> None:
    meter = IntervalMeter(INTERVAL)
    meter.interval(joules(1000.0, 1000.0))
    assert meter.interval(joules(1000.0 - seconds, 1000.0)) is None
    found = meter.interval(joules(1005.0 - seconds, 1500.0))
    assert (found is None) == is_late


def test_a_clock_that_went_back_starts_anew() -> None:
    meter = IntervalMeter(INTERVAL)
    meter.interval(joules(1000.0, 0.0))
    assert meter.interval(joules(1.0, 5.0)) is None
    found = meter.interval(joules(6.0, 10.0))
    assert found is not None
    assert (found.elapsed_us, found.energy_mj) == (5_000_000, 5_000)


def named(uuid: str, at: float, energy: float) -> Device:
    return Device(gpu=Gpu(uuid=uuid, index=0), at=at, readings=(Reading("energy_joules_total", energy),))


def test_a_card_that_is_forgotten_is_met_anew() -> None:
    meter = IntervalMeter(INTERVAL)
    meter.interval(named("GPU-1", 0.0, 0.0))
    gap = meter.interval(named("GPU-1", 3600.0, 9.0))
    assert gap is not None
    assert (gap.is_gap, gap.energy_mj) == (True, 9000)
    meter.forget(["GPU-1", "GPU-never-seen"])
    assert meter.interval(named("GPU-1", 3605.0, 90.0)) is None


def test_with_a_card_its_idle_power_is_forgotten() -> None:
    meter = IntervalMeter(INTERVAL)
    meter.interval(joules(0.0, 0.0, power_watts=80.0, utilization_ratio=0.0))
    meter.forget(["GPU-1"])
    meter.interval(joules(5.0, 1.0))
    found = meter.interval(joules(10.0, 2.0))
    assert found is not None
    assert found.idle_mj == round(0.12 * LIMIT * 5 * 1000)


@given(st.lists(st.tuples(st.floats(0.02, 100), st.floats(0, 1000)), min_size=1, max_size=20))
def test_the_intervals_add_up_to_the_counter(steps: list[tuple[float, float]]) -> None:
    meter, at, energy, booked = IntervalMeter(INTERVAL), 0.0, 0.0, 0
    meter.interval(device(at, energy_joules_total=energy))
    for seconds, more in steps:
        at, energy = at + seconds, energy + more
        found = meter.interval(device(at, energy_joules_total=energy))
        assert found is not None
        booked += found.energy_mj or 0
    assert booked == round(energy * 1000)


def test_a_counter_that_moves_in_steps_is_believed_for_all_the_time_since_it_moved() -> None:
    """A page may show the counter of half a minute ago: a step is six intervals' energy, and their idle part."""
    standing = [joules(-5.0, 0.0), *(joules(5.0 * number, 100.0) for number in range(6))]
    found = between(*standing, joules(30.0, 100.0 + 30 * 400.0, utilization_ratio=1.0))
    assert found.energy_mj == 30 * 400_000
    assert found.idle_mj == round(30 * 0.12 * LIMIT * 1e3)
    assert (found.elapsed_us, found.energy_us) == (5_000_000, 30_000_000)
    assert between(*standing).energy_us == 0


def test_the_first_step_of_a_counter_has_no_known_beginning() -> None:
    """It may have stood for long before the agent began to look."""
    first = joules(5.0, 1000.0)
    assert between(joules(0.0, 0.0), first).energy_us is None
    assert between(joules(0.0, 0.0), first, joules(10.0, 3000.0)).energy_us == 5_000_000
    began_anew = between(joules(0.0, 0.0), first, joules(10.0, 0.0), joules(15.0, 10.0))
    assert began_anew.energy_us == 5_000_000


def test_without_a_counter_idle_energy_is_that_of_the_interval_alone() -> None:
    quiet = [device(5.0 * number, power_watts=100.0, utilization_ratio=0.0) for number in range(4)]
    assert between(*quiet).idle_mj == 500_000


def test_a_leap_beyond_all_the_time_since_it_moved_is_not_believed() -> None:
    standing = [joules(5.0 * number, 100.0) for number in range(6)]
    found = between(*standing, joules(30.0, 1e9, power_watts=100.0))
    assert found.energy_mj == 500_000
