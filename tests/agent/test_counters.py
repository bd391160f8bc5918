"""Device counters over the agent's life."""

from hypothesis import given
from hypothesis import strategies as st

from podgpu.agent.counters import Counters
from podgpu.model import Device, Gpu, Reading, XidEvent

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


def test_xids_are_counted_and_the_last_is_named() -> None:
    counters = Counters()
    counters.note([XidEvent(uuid="GPU-1", xid=79, at=5.0), XidEvent(uuid="GPU-1", xid=79, at=6.0)])
    readings = counters.apply(Device(gpu=Gpu(uuid="GPU-1", index=0))).readings
    assert Reading("xid_errors_total", 2, ("79",)) in readings
    assert Reading("xid_last_timestamp_seconds", 6.0) in readings
    assert Reading("xid_last_code", 79) in readings
