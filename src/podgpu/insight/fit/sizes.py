"""Which parts of a card there are, and the smallest that holds what a workload used."""

from collections.abc import Sequence
from math import ceil

from msgspec import Struct

from podgpu.catalog.mig_profiles import MEDIA, mig_card
from podgpu.insight.fit.figures import UseFigures
from podgpu.model.fit import INSTANCE, PORTION, CardType, FitTerms, WantedPart
from podgpu.numbers import memory, percent

GIB = 1 << 30
CORE_STEP = 0.05  # parts of the cores are asked for in such steps
LEAST_CORES = 0.1
GROWTHS_AHEAD = 2  # memory that still grows is given room for so many halves of the period


class PartSize(Struct, frozen=True, kw_only=True):
    """A part of a card that can be asked for."""

    kind: str  # INSTANCE or PORTION
    name: str  # for people
    ratio: float  # of the card: what it costs
    memory_bytes: int
    core_ratio: float
    bandwidth_ratio: float = 1.0  # of the card's memory: a part without hardware of its own may use it all
    wanted: WantedPart


class Need(Struct, frozen=True, kw_only=True):
    """What a part must hold."""

    memory_bytes: int
    core_ratio: float
    bandwidth_ratio: float = 0.0

    def fits(self, part: PartSize) -> bool:
        return (
            self.memory_bytes <= part.memory_bytes
            and self.core_ratio <= part.core_ratio
            and self.bandwidth_ratio <= part.bandwidth_ratio
        )


def need_of(figures: UseFigures, terms: FitTerms, dram_ratio: float | None) -> Need | None:
    """Return None where memory or busy time is not known. Never less than the most that was seen, plus headroom."""
    if figures.peak_bytes is None or figures.busy is None:
        return None
    peak = figures.peak_bytes * (1 + terms.headroom) + GROWTHS_AHEAD * figures.growth_bytes
    return Need(memory_bytes=ceil(peak), core_ratio=figures.busy, bandwidth_ratio=dram_ratio or 0.0)


def instances_of(card: CardType) -> tuple[PartSize, ...]:
    """Return the MIG profiles of the card, smallest first; none if it has no MIG, or is not known."""
    kind = mig_card(card.model)
    if kind is None:
        return ()
    slices = max(profile.compute_slices for profile in kind.profiles)
    found = []
    for profile in kind.profiles:
        cores, memory_part = profile.compute_slices / slices, profile.memory_slices / kind.memory_slices
        if MEDIA in profile.name or min(cores, memory_part) >= 1:  # asked for on purpose, or no part
            continue
        found.append(
            PartSize(
                kind=INSTANCE,
                name=profile.name,
                ratio=max(cores, memory_part),
                memory_bytes=profile.memory_bytes,
                core_ratio=cores,
                bandwidth_ratio=memory_part,
                wanted=WantedPart(profile=profile.name),
            )
        )
    return tuple(sorted(found, key=lambda part: (part.ratio, part.memory_bytes)))


def portion_for(need: Need, card: CardType) -> PartSize | None:
    """Return the part of memory and cores that holds it, in whole GiB and steps of cores; None if it is no part."""
    if card.memory_bytes is None:
        return None
    size = ceil(need.memory_bytes / GIB) * GIB
    cores = max(ceil(round(need.core_ratio / CORE_STEP, 6)) * CORE_STEP, LEAST_CORES)
    ratio = max(size / card.memory_bytes, cores)
    if ratio >= 1:
        return None
    return PartSize(
        kind=PORTION,
        name=f"{memory(size)}, {percent(cores)}",
        ratio=ratio,
        memory_bytes=size,
        core_ratio=cores,
        wanted=WantedPart(memory_bytes=size, core_ratio=round(cores, 2), ratio=round(ratio, 4)),
    )


def smallest(parts: Sequence[PartSize], need: Need) -> PartSize | None:
    return next((part for part in parts if need.fits(part)), None)
