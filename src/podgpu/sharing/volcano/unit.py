"""How large a unit of memory is: so many MiB, by a factor that is a setting of Volcano's plugins.

A plugin offers a card's MiB divided by the factor, rounded down, as ids. So the factor is one of those that lead to the
number of ids, for all cards alike. If these are several, it is the only round number among them; if there are two round
ones, it is not known. Plugins 1.9.2 to 1.11 offer 32,767 ids for every card, which says nothing. Older plugins offer no
memory and no cores, and count in MiB. Newer ones may offer no memory either: the kubelet refuses lists that are too
long.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import Struct

MIB = 1 << 20
ANY_CARD = 32_767
_ROUND = {1 << power for power in range(21)} | {
    digit * 10**power for digit in (1, 2, 5) for power in range(6)
}


class MemoryUnit(Struct, frozen=True, kw_only=True):
    """`of_card` is how many a card has, by its UUID, where that is known; `mib` is how large one is."""

    of_card: Mapping[str, int]
    mib: int | None = None

    def share(self, card: str, units: int) -> float:
        total = self.of_card.get(card)
        return min(1.0, units / total) if total else 0.0

    def size(self, card: str, units: int) -> int | None:
        """Return bytes. More units than a card has mean that the kubelet still lists those of an earlier factor."""
        is_possible = 0 < units <= self.of_card.get(card, 0)
        return units * self.mib * MIB if self.mib and is_possible else None


def mebibyte(memory: Mapping[str, int]) -> MemoryUnit:
    return MemoryUnit(of_card={card: size // MIB for card, size in memory.items()}, mib=1)


def offered(counts: Counter[str], memory: Mapping[str, int]) -> MemoryUnit:
    """Return the unit of which so many ids are offered of each card. `memory` is the cards' in bytes."""
    known = {card: count for card, count in counts.items() if count != ANY_CARD}
    sizes = {card: memory[card] // MIB for card in known if memory.get(card)}
    least = max((mib // (known[card] + 1) + 1 for card, mib in sizes.items()), default=1)
    most = min((mib // known[card] for card, mib in sizes.items()), default=0)
    return MemoryUnit(of_card=known, mib=_only(least, most))


def _only(least: int, most: int) -> int | None:
    if least == most:
        return least
    fitting = list(_round(least, most))
    return fitting[0] if len(fitting) == 1 else None


def _round(least: int, most: int) -> Iterator[int]:
    return (one for one in sorted(_ROUND) if least <= one <= most)
