"""The outermost fields of a protobuf message, one at a time.

The library decodes a message as a whole. 16 MiB of empty pods become hundreds of MiB of objects in that way.
"""

from collections.abc import Iterator
from typing import TypeAlias

from google.protobuf.message import DecodeError

from podgpu.kube.kubelet.rpc import AnswerRejected

MOST_FIELDS = 1_000_000  # of an answer
_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10

Fields: TypeAlias = dict[int, list[memoryview]]  # by their numbers


class FieldReader:
    """Raises AnswerRejected for more fields than `most`, and DecodeError for bytes that are no message."""

    def __init__(self, most: int = MOST_FIELDS) -> None:
        self._left = most

    def fields(self, data: memoryview) -> Iterator[tuple[int, memoryview]]:
        """Yield number and content of each field that has a length."""
        at, end = 0, len(data)
        while at < end:
            self._left -= 1
            if self._left < 0:
                raise AnswerRejected("too_many", "an answer with more fields than any node has")
            tag, at = _varint(data, at)
            kind = tag & 7
            if kind == _DELIMITED:
                size, at = _varint(data, at)
                if size > end - at:
                    raise DecodeError("a field that is longer than its message")
                yield tag >> 3, data[at : at + size]
                at += size
            else:
                at = _after(data, at, kind)

    def named(self, data: memoryview, number: int) -> Iterator[memoryview]:
        return (content for found, content in self.fields(data) if found == number)

    def grouped(self, data: memoryview) -> Fields:
        found: Fields = {}
        for number, content in self.fields(data):
            found.setdefault(number, []).append(content)
        return found


def _after(data: memoryview, at: int, kind: int) -> int:
    if kind == _VARINT:
        return _varint(data, at)[1]
    if kind not in (_FIXED32, _FIXED64):
        raise DecodeError("a field of a kind that is not in use")
    at += 4 if kind == _FIXED32 else 8
    if at > len(data):
        raise DecodeError("a field that is longer than its message")
    return at


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return a number and where it ends. Nearly all are of one byte."""
    if at < len(data) and data[at] < 0x80:
        return data[at], at + 1
    value = 0
    for place, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    raise DecodeError("a number without an end")
