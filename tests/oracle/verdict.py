"""Compares claims with the truth: right, wrong or not understood."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct

from podgpu.model import Claim
from tests.oracle.case import Right

RIGHT, WRONG, NOT_UNDERSTOOD = "right", "wrong", "not-understood"
ROUNDING = 1e-6
IN_INSTANCE = ("share", "memory")  # its cores are the hardware's, whatever a note says of the card's
PERCENT = 100

Place: TypeAlias = tuple[str, str, str, str, str]  # namespace, pod, container, card, instance


class Sum(Struct):
    """All that a container has of a card or instance. None means not defined."""

    share: float | None = None
    memory: float | None = None
    cores: float | None = None

    def add(self, share: float | None, memory: float | None, cores: float | None) -> None:
        self.share = _plus(self.share, share)
        self.memory = _plus(self.memory, memory)
        self.cores = _plus(self.cores, cores)


class Difference(Struct, frozen=True):
    """`verdict` is wrong, or not understood where nothing is claimed of what is true."""

    verdict: str
    place: Place
    text: str

    def __str__(self) -> str:
        return f"{self.verdict}: {'/'.join(self.place)}: {self.text}"


def differences(truth: Iterable[Right], claims: Iterable[Claim]) -> Iterator[Difference]:
    true, claimed = _true(truth), _claimed(claims)
    for place in sorted(true.keys() | claimed.keys()):
        if place not in true:
            yield Difference(WRONG, place, "claims what is not its own")
        elif place not in claimed:
            yield Difference(NOT_UNDERSTOOD, place, "claims nothing")
        else:
            yield from _between(place, true[place], claimed[place])


def verdict(found: Iterable[Difference]) -> str:
    verdicts = {difference.verdict for difference in found}
    return next((kind for kind in (WRONG, NOT_UNDERSTOOD) if kind in verdicts), RIGHT)


def _between(place: Place, true: Sum, claimed: Sum) -> Iterator[Difference]:
    for name in IN_INSTANCE if place[-1] else Sum.__struct_fields__:
        is_so, is_said = getattr(true, name), getattr(claimed, name)
        if is_so is not None and abs(is_so - (is_said or 0)) > ROUNDING:
            kind = WRONG if is_said else NOT_UNDERSTOOD
            yield Difference(kind, place, f"{name} is {is_so}, claimed {is_said}")


def _true(truth: Iterable[Right]) -> dict[Place, Sum]:
    sums: defaultdict[Place, Sum] = defaultdict(Sum)
    for claim in truth:
        place = claim.namespace, claim.pod, claim.container, claim.gpu, claim.mig
        sums[place].add(claim.share, claim.memory, claim.cores)
    return sums


def _claimed(claims: Iterable[Claim]) -> dict[Place, Sum]:
    sums: defaultdict[Place, Sum] = defaultdict(Sum)
    for claim in claims:
        holder = claim.container
        place = holder.namespace, holder.pod, holder.container, claim.gpu, claim.mig
        cores = None if claim.core_limit_ratio is None else claim.core_limit_ratio * PERCENT
        sums[place].add(claim.share or None, claim.memory_limit_bytes, cores)
    return sums


def _plus(total: float | None, more: float | None) -> float | None:
    return total if more is None else more + (total or 0)
