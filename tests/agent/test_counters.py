"""Device counters over the agent's life."""

from hypothesis import given
from hypothesis import strategies as st

from podgpu.agent.counters import Counters
from podgpu.model import Device, Fault, Gpu, Reading, XidEvent

NAME = "energy_joules_total"


def shown(counters: Counters, value: float) -> float:
    device = Device(gpu=Gpu(uuid="GPU-1", index=0), readings=(Reading(NAME, value),))
    return next(reading.value for reading in counters.apply(device).readings if reading.metric == NAME)


def test_a_reset_goes_on_from_where_it_was() -> None:
    counters = Counters()
    assert [shown(counters, value) for value in (100.0, 250.0, 10.0, 30.0)] == [100.0, 250.0, 260.0, 280.0]


def test_joules_have_the_decimals_of_millijoules() -> None:
    """Also where a counter goes on from what it was before a reset."""
    counters = Counters()
    assert [shown(counters, value) for value in (711_178.002, 292_217.594)] == [711_178.002, 1_003_395.596]


def test_a_stutter_adds_nothing() -> None:
    counters = Counters()
    assert [shown(counters, value) for value in (100.0, 99.0, 101.0)] == [100.0, 100.0, 101.0]


@given(st.lists(st.floats(0, 1e12), max_size=20))
def test_a_counter_never_falls(values: list[float]) -> None:
    counters = Counters()
    pages = [shown(counters, value) for value in values]
    assert pages == sorted(pages)


LIMIT = Reading("power_limit_watts", 700.0)


def drawn(counters: Counters, at: float, value: float) -> float | None:
    """What is shown of the energy of a card whose limit is known, if anything is."""
    device = Device(gpu=Gpu(uuid="GPU-1", index=0), at=at, readings=(Reading(NAME, value), LIMIT))
    return next((reading.value for reading in counters.apply(device).readings if reading.metric == NAME), None)


def test_an_energy_that_jumps_for_a_while_moves_nothing_on_the_page() -> None:
    """Prometheus takes the smallest fall for a new beginning, and a rise for use."""
    counters, real = Counters(), 1_001_637.023
    before = [drawn(counters, at, real + 100 * at) for at in (1.0, 2.0)]
    during = [drawn(counters, at, 1e12) for at in (3.0, 4.0, 5.0, 6.0)]
    after = [drawn(counters, at, real + 100 * at) for at in (7.0, 8.0, 9.0)]
    pages = [value for value in (*before, *during, *after) if value is not None]
    assert pages == sorted(pages)
    assert len(after) == 3
    assert pages[-1] - pages[0] < 1000


def test_the_third_reading_in_a_row_that_no_card_can_draw_is_believed() -> None:
    counters = Counters()
    drawn(counters, 0.0, 1000.0)
    assert [drawn(counters, at, 1e12 + 500 * at) for at in (1.0, 2.0, 3.0, 4.0)] == [
        None,
        None,
        1000.0,
        1500.0,
    ]


def test_a_counter_that_is_read_every_five_seconds_has_drawn_no_more_than_the_card_can() -> None:
    """It shows the same until it is read again, and then the energy of all the time since."""
    counters = Counters()
    pages = [drawn(counters, float(second), 1000.0 + 690 * (second // 5 * 5)) for second in range(16)]
    assert pages == [1000.0 + 690 * (second // 5 * 5) for second in range(16)]


def test_a_reading_that_no_card_can_draw_is_not_believed_because_it_is_shown_again() -> None:
    counters = Counters()
    drawn(counters, 0.0, 1000.0)
    assert [drawn(counters, at, 1e12) for at in (1.0, 2.0, 3.0, 4.0, 5.0)] == [None] * 5


def test_a_driver_that_begins_anew_goes_on_from_where_it_was() -> None:
    counters = Counters()
    assert [drawn(counters, at, value) for at, value in ((1.0, 5e6), (2.0, 300.0), (3.0, 900.0))] == [
        5e6,
        5e6 + 300,
        5e6 + 900,
    ]


def seen(counters: Counters, uuid: str, value: float) -> float:
    device = Device(gpu=Gpu(uuid=uuid, index=0), readings=(Reading(NAME, value),))
    return counters.apply(device).readings[0].value


def test_a_card_that_was_away_goes_on_counting_unless_it_is_forgotten() -> None:
    counters = Counters()
    assert [seen(counters, "GPU-1", value) for value in (100.0, 20.0)] == [100.0, 120.0]
    seen(counters, "GPU-2", 1.0)
    assert seen(counters, "GPU-1", 30.0) == 130.0
    counters.forget(["GPU-1", "GPU-never-seen"])
    assert seen(counters, "GPU-1", 40.0) == 40.0
    assert seen(counters, "GPU-2", 0.1) == 1.1


def test_a_card_that_does_not_answer_keeps_its_xids() -> None:
    counters = Counters()
    counters.note([XidEvent(uuid="GPU-1", xid=79, at=5.0)], 5.0)
    silent = counters.apply(Device(gpu=Gpu(uuid="GPU-1", index=0), fault=Fault(reason="lost")))
    assert Reading("xid_errors_total", 1, ("79",)) in silent.readings


def test_xids_are_counted_and_the_last_is_named() -> None:
    counters = Counters()
    counters.note([XidEvent(uuid="GPU-1", xid=79, at=5.0), XidEvent(uuid="GPU-1", xid=79, at=6.0)], 6.0)
    readings = counters.apply(Device(gpu=Gpu(uuid="GPU-1", index=0))).readings
    assert Reading("xid_errors_total", 2, ("79",)) in readings
    assert Reading("xid_last_timestamp_seconds", 6.0) in readings
    assert Reading("xid_last_code", 79) in readings


def looked(counters: Counters, at: float, *reasons: str) -> dict[tuple[str, str], float]:
    """What was recently, by the reading at this time."""
    readings = tuple(
        Reading("clock_event", float(reason in reasons), (reason,)) for reason in ("idle", "hardware_thermal")
    )
    device = counters.apply(Device(gpu=Gpu(uuid="GPU-1", index=0), at=at, readings=readings))
    recent = (reading for reading in device.readings if reading.metric.endswith("_recent"))
    return {(reading.metric, reading.labels[0]): reading.value for reading in recent}


def test_what_happened_in_the_last_five_minutes_is_counted() -> None:
    counters = Counters()
    counters.note([XidEvent(uuid="GPU-1", xid=31, at=1760000000.0)] * 2, 1000.0)
    assert looked(counters, 1000.0, "idle") == {
        ("xid_errors_recent", "31"): 2,
        ("clock_events_recent", "idle"): 1,
    }
    assert looked(counters, 1100.0, "idle", "hardware_thermal")["clock_events_recent", "idle"] == 2
    assert looked(counters, 1300.0) == {
        ("clock_events_recent", "hardware_thermal"): 1,
        ("clock_events_recent", "idle"): 1,
    }


def test_an_xid_of_a_long_fault_is_not_recent_once_the_card_is_back() -> None:
    counters = Counters()
    lost = Device(gpu=Gpu(uuid="GPU-1", index=0), fault=Fault(reason="lost"))
    for at, xid in ((1000.0, 79), (2000.0, 31)):
        counters.note([XidEvent(uuid="GPU-1", xid=xid, at=at)], at)
        counters.apply(lost)
    assert looked(counters, 2100.0) == {("xid_errors_recent", "31"): 1}
