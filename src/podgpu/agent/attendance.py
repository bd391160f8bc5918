"""Which cards were seen of late, and which have been away for so long that nothing is kept of them any more.

A real card comes back. But whoever writes a page may invent new cards in every cycle.
"""

GRACE_SECONDS = 3600.0
MOST_CARDS = 256


class Attendance:
    """Beyond `most` cards, those longest unseen are forgotten before their time."""

    def __init__(self, most: int = MOST_CARDS) -> None:
        self._most = most
        self._seen_at: dict[str, float] = {}  # the longest unseen first

    def note(self, uuid: str, now: float) -> list[str]:
        """Note that this card is here, and return those to forget."""
        self._seen_at.pop(uuid, None)
        self._seen_at[uuid] = now
        gone: list[str] = []
        for other, seen_at in self._seen_at.items():
            if now - seen_at <= GRACE_SECONDS and len(self._seen_at) - len(gone) <= self._most:
                break
            gone.append(other)
        for other in gone:
            del self._seen_at[other]
        return gone
