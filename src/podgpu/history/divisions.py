"""How a snapshot is divided into its cards, and a cluster into its nodes, to be kept as texts."""

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

import msgspec
from msgspec.structs import replace

from podgpu.insight.moments import moment_of, moment_of_cluster
from podgpu.model import Card, Cluster, ClusterNode, Moment, Reading, Snapshot

_write = msgspec.json.Encoder().encode
# What JSON cannot write: a lone surrogate, and a reading that is no number.
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
_NO_NUMBER = b'",null,['
_READING = len(Reading.__struct_fields__)


def written(value: Any) -> bytes:
    """Write structs as they are, with nothing left out: that takes a tenth of the time that the document takes."""
    try:
        text = _write(value)
    except UnicodeEncodeError:
        text = b""
    return text if text and _NO_NUMBER not in text else _write(_sound(msgspec.to_builtins(value)))


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
    return (
        isinstance(item, list)
        and len(item) == _READING
        and isinstance(item[1], float)
        and not isfinite(item[1])
    )


class CardsOfNode:
    """A snapshot, and its cards."""

    has_many = False
    read_head = msgspec.json.Decoder(tuple[tuple[str, ...], Snapshot]).decode
    read_part = msgspec.json.Decoder(Card).decode

    def taken_at(self, state: Snapshot) -> float:
        return state.taken_at

    def divide(self, state: Snapshot) -> tuple[Snapshot, Mapping[str, Card]]:
        # Cards that do not answer may have no UUID.
        cards = {f"{card.gpu.index} {card.gpu.uuid}": card for card in state.cards}
        return replace(state, cards=()), cards

    def join(self, head: Snapshot, parts: Iterable[Card]) -> Snapshot:
        return replace(head, cards=tuple(parts))

    def moment(self, state: Snapshot) -> Moment:
        return moment_of(state)

    def cards(self, part: Card) -> Iterable[Card]:
        return (part,)


class NodesOfCluster:
    """A cluster, and its nodes."""

    has_many = True
    read_head = msgspec.json.Decoder(tuple[tuple[str, ...], Cluster]).decode
    read_part = msgspec.json.Decoder(ClusterNode).decode

    def taken_at(self, state: Cluster) -> float:
        return state.taken_at

    def divide(self, state: Cluster) -> tuple[Cluster, Mapping[str, ClusterNode]]:
        nodes = {node.name: replace(node, written=None) for node in state.nodes}
        return replace(state, nodes=()), nodes

    def join(self, head: Cluster, parts: Iterable[ClusterNode]) -> Cluster:
        return replace(head, nodes=tuple(parts))

    def moment(self, state: Cluster) -> Moment:
        return moment_of_cluster(state)

    def cards(self, part: ClusterNode) -> Iterable[Card]:
        return part.snapshot.cards if part.snapshot and part.state == "fresh" else ()
