"""What is booked to no container, for a screen: in which order, and each reason in words."""

from podgpu.model import ENDED, UNATTRIBUTED, Card, Rest
from podgpu.views.glance import shows

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


_LEAST_WATTS = 0.5  # what is less is not worth a line


def present(card: Card) -> list[Rest]:
    """List what is on the card now, as far as it shows; counters alone are history."""
    found = [rest for rest in card.rest if rest.memory_bytes or rest.running or _shows(rest)]
    return sorted(found, key=lambda rest: _ORDER.get(rest.reason, len(_ORDER)))


def _shows(rest: Rest) -> bool:
    return (rest.power_watts or 0) >= _LEAST_WATTS or shows(rest.use)
