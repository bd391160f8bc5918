import msgspec
import pytest
from hypothesis import given

from podgpu.errors import UserError
from podgpu.model import Reading, Snapshot
from podgpu.views import json
from tests.conftest import Golden
from tests.views.quirks import BOOKINGS, BUSY, PODS, SNAPSHOT, SPLIT, STUCK
from tests.views.test_native import SNAPSHOTS


def test_the_document(golden: Golden) -> None:
    golden("snapshot.json", msgspec.json.format(json.encode(SNAPSHOT)) + b"\n")


def test_a_snapshot_comes_back_as_it_was() -> None:
    readings = (Reading("power_watts", 1.5), Reading("temperature_celsius", 50.0, ("gpu",)))
    hostile = ("<b>", "evil")
    snapshot = msgspec.structs.replace(
        SNAPSHOT,
        devices=(msgspec.structs.replace(BUSY, readings=readings), SPLIT, STUCK),
        bookings=tuple(one for one in BOOKINGS if one.container.namespace not in hostile),
        pods=tuple(msgspec.structs.replace(pod, annotations={}) for pod in PODS if pod.uid not in hostile),
        balances=SNAPSHOT.balances[:2],
    )
    assert json.decode(json.encode(snapshot)) == snapshot


def test_annotations_are_not_given_away() -> None:
    assert b"hunter2" not in json.encode(SNAPSHOT)


def test_labels_carry_their_names() -> None:
    device = msgspec.structs.replace(BUSY, readings=(Reading("temperature_celsius", 50.0, ("gpu",)),))
    document = msgspec.json.decode(json.encode(msgspec.structs.replace(SNAPSHOT, devices=(device,))))
    assert document["devices"][0]["readings"] == [
        {"metric": "temperature_celsius", "labels": {"sensor": "gpu"}, "value": 50.0}
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"schema":2}',
        b'{"schema":1}',
        b'{"schema":1,"devices":7}',
        b'{"schema":1,"devices":[1]}',
    ],
)
def test_anything_else_is_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(UserError) as refusal:
        json.decode(data)
    assert "\n" not in str(refusal.value)


@given(SNAPSHOTS)
def test_any_snapshot_can_be_encoded_and_read_again(snapshot: Snapshot) -> None:
    once = json.encode(snapshot)
    assert json.encode(json.decode(once)) == once
