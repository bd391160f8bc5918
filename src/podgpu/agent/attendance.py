"""Which cards were seen lately, and which have been away for so long that nothing is kept of them any more.

A real card comes back. But whoever writes a page may invent new cards in every cycle.
"""

from collections.abc import Iterable

GRACE_SECONDS = 3600.0
MOST_CARDS = 256


class Attendance:
    """One for the whole agent: whoever keeps something about cards forgets those that this names.

    Beyond `most` cards, those longest unseen are forgotten before their time.
    """

    def __init__(self, most: int = MOST_CARDS) -> None:
        self._most = most
        self._seen_at: dict[str, float] = {}  # the longest unseen first

    def note(self, cards: Iterable[str], now: float) -> list[str]:
        """Note that these cards are here, and return those to forget."""
        for card in cards:
            self._seen_at.pop(card, None)
            self._seen_at[card] = now
        gone: list[str] = []
        for card, seen_at in self._seen_at.items():
            if now - seen_at <= GRACE_SECONDS and len(self._seen_at) - len(gone) <= self._most:
                break
            gone.append(card)
        for card in gone:
            del self._seen_at[card]
        return gone
