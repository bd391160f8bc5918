"""What one container may have, where what a system left on the node can be read in more than one way."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from msgspec.structs import replace

from podgpu.model import Claim, ContainerRef

# Who asks, and the cards that each reading names: as long as these are the same, so is the answer.
Question: TypeAlias = tuple[str, ContainerRef, tuple[frozenset[str], ...]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Alternatives:
    """A container's claims by each reading: at least one by each, and never the same cards.

    `usual` is the reading that the system claims by unless the container's processes are seen on the cards of another.
    Without a usual one nothing is claimed until they are seen. `doubt` is what to say meanwhile, with `{count}` for the
    number of containers. One that `is_floor` counts only where nothing else is claimed for the container. One is equal
    to itself alone, so that it costs nothing to look up.
    """

    readings: tuple[tuple[Claim, ...], ...]
    usual: int | None = None
    doubt: str = ""
    is_floor: bool = False

    @property
    def container(self) -> ContainerRef:
        return self.readings[0][0].container

    @property
    def system(self) -> str:
        return self.readings[0][0].system

    @cached_property
    def cards(self) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(claim.gpu for claim in reading) for reading in self.readings)

    @cached_property
    def question(self) -> Question:
        return self.system, self.container, self.cards

    def settled(self, right: int) -> Iterator[Claim]:
        """Yield the claims of the right reading, with the cards that the others would have named."""
        others = sorted(frozenset().union(*self.cards) - self.cards[right])
        yield from (replace(claim, ruled_out=tuple(others)) for claim in self.readings[right])
