"""How a snapshot is divided into its cards, and a cluster into its nodes, to be kept as texts."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from podgpu.insight.moments import moment_of, moment_of_cluster
from podgpu.model import Card, Cluster, ClusterNode, Pod, Reading, Snapshot

# What JSON cannot write: a lone surrogate, and a reading that is no number.
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
_READING = len(Reading.__struct_fields__)
_write = msgspec.json.Encoder().encode


def written(value: Any) -> bytes:
    """Write structs as they are: that takes a tenth of the time that the document takes."""
    try:
        return _write(value)
    except UnicodeEncodeError:
        return _write(_sound(msgspec.to_builtins(value)))


def reader(kind: Any) -> Callable[[bytes], Any]:
    """Return what reads it again."""
    decode = msgspec.json.Decoder(kind).decode

    def read(text: bytes) -> Any:
        try:
            return decode(text)
        except msgspec.ValidationError:
            return msgspec.convert(_sound(msgspec.json.decode(text)), kind)

    return read


def _sound(value: Any) -> Any:
    """Leave out what no document has either."""
    if isinstance(value, str):
        return value.translate(_SURROGATES)
    if isinstance(value, dict):
        return {_sound(key): _sound(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_sound(item) for item in value if not _is_unsound(item)]
    return value


def _is_unsound(item: Any) -> bool:
    """Whether it is a reading, which is written as a list, and its value is no number."""
    return isinstance(item, list) and len(item) == _READING and item[1] is None


CardOrPods = Card | tuple[Pod, ...]


class ByCard:
    """A snapshot, its cards, and its pods, which seldom change."""

    has_many = False
    read_head = staticmethod(reader(tuple[tuple[str, ...], Snapshot]))
    read_part = staticmethod(reader(CardOrPods))
    moment = staticmethod(moment_of)

    def divide(self, state: Snapshot) -> tuple[Snapshot, Mapping[str, CardOrPods]]:
        # Cards that do not answer may have no UUID.
        cards = {f"{card.gpu.index} {card.gpu.uuid}": card for card in state.cards}
        return replace(state, cards=(), pods=()), {**cards, "pods": state.pods}

    def join(self, head: Snapshot, parts: Iterable[CardOrPods]) -> Snapshot:
        *cards, pods = parts
        return replace(head, cards=tuple(cards), pods=pods)

    def cards(self, part: CardOrPods) -> Iterable[Card]:
        return (part,) if isinstance(part, Card) else ()


class ByNode:
    """A cluster, and its nodes."""

    has_many = True
    read_head = staticmethod(reader(tuple[tuple[str, ...], Cluster]))
    read_part = staticmethod(reader(ClusterNode))
    moment = staticmethod(moment_of_cluster)

    def divide(self, state: Cluster) -> tuple[Cluster, Mapping[str, ClusterNode]]:
        nodes = {node.name: replace(node, written=None) for node in state.nodes}
        return replace(state, nodes=()), nodes

    def join(self, head: Cluster, parts: Iterable[ClusterNode]) -> Cluster:
        return replace(head, nodes=tuple(parts))

    def cards(self, part: ClusterNode) -> Iterable[Card]:
        return part.snapshot.cards if part.snapshot and part.state == "fresh" else ()
