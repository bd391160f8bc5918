"""A core/v1 Pod as the kubelet's Pods API sends it, in protobuf, turned into the JSON that the API server writes."""

from datetime import UTC, datetime
from typing import Any

import msgspec
from google.protobuf.message import DecodeError, Message

from podgpu.kube._gen.pods_pb2 import PodMessage, Quantity, Time

_YEAR_10000 = 253402300800


def pod_json(message: bytes | PodMessage) -> bytes:
    """Raise ValueError for bytes that are no protobuf message."""
    try:
        found = PodMessage.FromString(message) if isinstance(message, bytes) else message
    except DecodeError as error:
        raise ValueError("not a pod") from error
    return msgspec.json.encode({"spec": {}, "status": {}, **_object(found)})


def _object(message: Message) -> dict[str, Any]:
    return {field.json_name: _value(value) for field, value in message.ListFields()}


def _value(value: Any) -> Any:
    match value:
        case str() | bool():
            return value
        case Quantity():
            return value.text
        case Time():
            return _time(value)
        case Message():
            return _object(value)
        case _ if hasattr(value, "items"):
            return {key: _value(content) for key, content in value.items()}
        case _:
            return [_value(item) for item in value]


def _time(time: Time) -> str:
    """A time before 1970 was left empty."""
    if not 0 < time.seconds < _YEAR_10000:
        return ""
    return datetime.fromtimestamp(time.seconds + time.nanos / 1e9, UTC).isoformat()
