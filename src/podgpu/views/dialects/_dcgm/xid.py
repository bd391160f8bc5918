"""How dcgm-exporter shows XID errors: 0 before the first, and each with its meaning in words."""

from msgspec.structs import replace

from podgpu.catalog.xids import WORDS
from podgpu.model import Card, Reading

LAST = "xid_last_code"

UNKNOWN = "Unknown Error"


def heard(card: Card) -> Card:
    """The card with 0 as its last XID, if it had none and every XID of it is heard."""
    if not card.ability.hears_xids or card.fault or any(one.metric == LAST for one in card.readings):
        return card
    return replace(card, readings=(*card.readings, Reading(LAST, 0.0)))


def words(code: int) -> str:
    return WORDS.get(code, UNKNOWN)
