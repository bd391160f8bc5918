"""The cards that HAMi's plugin notes on its node: a JSON list, or in older versions fields with commas.

Devices of other vendors have registers of their own. With memory scaling the noted memory is more than the card has.
"""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from podgpu.model import Device, KubeNode
from podgpu.sharing import kube_cards

REGISTER = "hami.io/node-nvidia-register"
MIB = 1 << 20
MOST_MIB = 1 << 24


class RegisteredCard(Struct):
    id: str
    index: int | None = None
    devmem: int = 0
    type: str = ""


_decode = msgspec.json.Decoder(list[RegisteredCard]).decode


def cards(node: KubeNode) -> Iterator[Device]:
    text = node.annotations.get(REGISTER, "")
    for one in _listed(text) if text.lstrip().startswith("[") else _joined(text):
        if kube_cards.UUID.fullmatch(one.id):
            number = one.index if one.index is not None and 0 <= one.index < kube_cards.MOST_CARDS else None
            memory = one.devmem * MIB if 0 < one.devmem <= MOST_MIB else None
            yield kube_cards.card(one.id, number=number, model=one.type, memory=memory)


def _listed(text: str) -> list[RegisteredCard]:
    try:
        return _decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return []


def _joined(text: str) -> Iterator[RegisteredCard]:
    """Read `UUID,COUNT,MiB,CORES,TYPE,NUMA,HEALTH[,INDEX,MODE]:`."""
    for one in text.split(":"):
        fields = one.split(",")
        if len(fields) >= 7:
            index = fields[7] if len(fields) > 7 else ""
            yield RegisteredCard(
                id=fields[0],
                index=int(index) if index.isascii() and index.isdigit() else None,
                devmem=int(fields[2]) if fields[2].isascii() and fields[2].isdigit() else 0,
                type=fields[4],
            )
