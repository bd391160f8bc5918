"""What is booked to no container, for a screen: in which order, and each reason in words."""

from podgpu.model import ENDED, UNATTRIBUTED, Card, Rest

REASONS = {
    "idle": "idle",
    "overhead": "overhead",
    "host": "host processes",
    "container": "other containers",
    "unknown": "unknown",
    ENDED: "ended pods",
}
MEANINGS = {
    "idle": "power of a card, or a part of it, that nobody was given",
    "overhead": "memory of the driver, of MPS servers and of no process",
    "host": "processes outside any container",
    "container": "containers outside Kubernetes",
    "unknown": "the owner could not be found",
    ENDED: "what pods used before they ended",
}

_ORDER = {reason: number for number, reason in enumerate(UNATTRIBUTED)}


def present(card: Card) -> list[Rest]:
    """List what is on the card now; counters alone are history."""
    found = [rest for rest in card.rest if rest.memory_bytes or rest.running]
    return sorted(found, key=lambda rest: _ORDER.get(rest.reason, len(_ORDER)))
