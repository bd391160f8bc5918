"""How dcgm-exporter shows XID errors: 0 before the first, and each with its meaning in words."""

from msgspec.structs import replace

from podgpu.model import Card, Reading

LAST = "xid_last_code"

UNKNOWN = "Unknown Error"

_PUSH_BUFFER = "Invalid or corrupted push buffer stream"
_WORDS = {
    0: "No Error",
    1: _PUSH_BUFFER,
    2: _PUSH_BUFFER,
    3: _PUSH_BUFFER,
    4: _PUSH_BUFFER,
    6: _PUSH_BUFFER,
    7: "Invalid or corrupted push buffer address",
    8: "GPU stopped processing",
    9: "Driver error programming GPU",
    11: _PUSH_BUFFER,
    12: "Driver error handling GPU exception",
    13: "Graphics Engine Exception",
    31: "GPU memory page fault",
    32: _PUSH_BUFFER,
    38: "Driver firmware error",
    43: "GPU stopped processing",
    45: "Preemptive cleanup, due to previous errors -- Most likely to see when running multiple cuda applications"
    " and hitting a DBE",
    48: "Double Bit ECC Error",
    61: "Internal micro-controller breakpoint/warning",
    62: "Internal micro-controller halt",
    63: "ECC page retirement or row remapping recording event",
    64: "ECC page retirement or row remapper recording failure",
    68: "NVDEC0 Exception",
    69: "Graphics Engine class error",
    74: "NVLINK Error",
    79: "GPU has fallen off the bus",
    92: "High single-bit ECC error rate",
    94: "Contained ECC error",
    95: "Uncontained ECC error",
    119: "GSP RPC Timeout",
    120: "GSP Error",
}


def heard(card: Card) -> Card:
    """The card with 0 as its last XID, if it had none and every XID of it is heard."""
    if not card.ability.hears_xids or card.fault or any(one.metric == LAST for one in card.readings):
        return card
    return replace(card, readings=(*card.readings, Reading(LAST, 0.0)))


def words(code: int) -> str:
    return _WORDS.get(code, UNKNOWN)
