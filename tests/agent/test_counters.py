"""Device counters over the agent's life."""

from hypothesis import given
from hypothesis import strategies as st

from podgpu.agent.attendance import GRACE_SECONDS, MOST_CARDS
from podgpu.agent.counters import Counters
from podgpu.model import Device, Fault, Gpu, Reading, XidEvent

NAME = "energy_joules_total"


def shown(counters: Counters, value: float) -> float:
    device = Device(gpu=Gpu(uuid="GPU-1", index=0), readings=(Reading(NAME, value),))
    return next(one.value for one in counters.apply(device).readings if one.metric == NAME)


def test_a_reset_goes_on_from_where_it_was() -> None:
    counters = Counters()
    assert [shown(counters, value) for value in (100.0, 250.0, 10.0, 30.0)] == [100.0, 250.0, 260.0, 280.0]


def test_a_stutter_adds_nothing() -> None:
    counters = Counters()
    assert [shown(counters, value) for value in (100.0, 99.0, 101.0)] == [100.0, 100.0, 101.0]


@given(st.lists(st.floats(0, 1e12), max_size=20))
def test_a_counter_never_falls(values: list[float]) -> None:
    counters = Counters()
    pages = [shown(counters, value) for value in values]
    assert pages == sorted(pages)


def seen(counters: Counters, uuid: str, value: float, at: float) -> float:
    device = Device(gpu=Gpu(uuid=uuid, index=0), at=at, readings=(Reading(NAME, value),))
    return counters.apply(device).readings[0].value


def test_a_card_that_was_away_goes_on_counting_unless_it_was_for_too_long() -> None:
    counters = Counters()
    assert [seen(counters, "GPU-1", value, 0.0) for value in (100.0, 20.0)] == [100.0, 120.0]
    seen(counters, "GPU-2", 1.0, GRACE_SECONDS)
    assert seen(counters, "GPU-1", 30.0, GRACE_SECONDS) == 130.0
    seen(counters, "GPU-2", 2.0, 2 * GRACE_SECONDS + 1)
    assert seen(counters, "GPU-1", 40.0, 2 * GRACE_SECONDS + 1) == 40.0


def test_a_card_that_does_not_answer_is_still_there() -> None:
    counters = Counters()
    counters.note([XidEvent(uuid="GPU-1", xid=79, at=5.0)])
    for hour in range(4):
        seen(counters, "GPU-2", 1.0, hour * GRACE_SECONDS)
        silent = counters.apply(Device(gpu=Gpu(uuid="GPU-1", index=0), fault=Fault(reason="lost")))
        assert Reading("xid_errors_total", 1, ("79",)) in silent.readings


def test_invented_cards_do_not_fill_the_memory() -> None:
    counters = Counters()
    for number in range(3 * MOST_CARDS):
        seen(counters, f"GPU-{number}", 1.0, 0.0)
    assert len(counters._pasts) == MOST_CARDS


def test_xids_are_counted_and_the_last_is_named() -> None:
    counters = Counters()
    counters.note([XidEvent(uuid="GPU-1", xid=79, at=5.0), XidEvent(uuid="GPU-1", xid=79, at=6.0)])
    readings = counters.apply(Device(gpu=Gpu(uuid="GPU-1", index=0))).readings
    assert Reading("xid_errors_total", 2, ("79",)) in readings
    assert Reading("xid_last_timestamp_seconds", 6.0) in readings
    assert Reading("xid_last_code", 79) in readings
