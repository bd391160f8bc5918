import msgspec
import pytest
from hypothesis import given

from podgpu.errors import UserError
from podgpu.model import SCHEMA, Reading, Snapshot
from podgpu.views import json
from tests.conftest import Golden
from tests.tree import judged
from tests.views.quirks import BUSY, EVIL, PODS, SNAPSHOT, SPLIT, STUCK
from tests.views.test_native import SNAPSHOTS


def test_the_document(golden: Golden) -> None:
    golden("snapshot.json", msgspec.json.format(json.encode(SNAPSHOT)) + b"\n")


def test_a_snapshot_comes_back_as_it_was() -> None:
    readings = (Reading("power_watts", 1.5), Reading("temperature_celsius", 50.0, ("gpu",)))
    snapshot = msgspec.structs.replace(
        SNAPSHOT,
        cards=(msgspec.structs.replace(BUSY, readings=readings), SPLIT, STUCK),
        pods=tuple(msgspec.structs.replace(pod, annotations={}) for pod in PODS if pod.uid != EVIL.pod_uid),
    )
    snapshot = judged(snapshot)
    assert json.decode(json.encode(snapshot)) == snapshot


def test_annotations_are_not_given_away() -> None:
    assert b"hunter2" not in json.encode(SNAPSHOT)


def test_names_are_as_they_are_with_control_characters_escaped() -> None:
    name = "worker\x1b[31m\u202e1"
    document = json.encode(msgspec.structs.replace(SNAPSHOT, node=name))
    assert b"\x1b" not in document
    assert msgspec.json.decode(document)["node"] == name


def test_labels_carry_their_names() -> None:
    card = msgspec.structs.replace(BUSY, readings=(Reading("temperature_celsius", 50.0, ("gpu",)),))
    document = msgspec.json.decode(json.encode(msgspec.structs.replace(SNAPSHOT, cards=(card,))))
    assert document["cards"][0]["readings"] == [
        {"metric": "temperature_celsius", "labels": {"sensor": "gpu"}, "value": 50.0}
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"schema":3}',
        b'{"schema":2}',
        b'{"schema":2,"cards":7}',
        b'{"schema":2,"cards":[1]}',
    ],
)
def test_anything_else_is_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(UserError) as refusal:
        json.decode(data)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("schema", [SCHEMA - 1, SCHEMA + 1])
def test_a_document_of_another_schema_names_both(schema: int) -> None:
    data = json.encode(SNAPSHOT).replace(b'"schema":%d' % SCHEMA, b'"schema":%d' % schema, 1)
    with pytest.raises(UserError, match=f"schema {schema}, not {SCHEMA}: use matching versions"):
        json.decode(data)


def test_what_is_unknown_is_absent() -> None:
    (split,) = [shown for shown in msgspec.json.decode(json.encode(SNAPSHOT))["cards"] if shown["gpu"]["index"] == 1]
    assert "idle" not in split["tenants"][1] and "processes" not in split["tenants"][1]["booking"]
    assert split["tenants"][0]["idle"] is False


@given(SNAPSHOTS)
def test_any_snapshot_can_be_encoded_and_read_again(snapshot: Snapshot) -> None:
    once = json.encode(snapshot)
    assert json.encode(json.decode(once)) == once
