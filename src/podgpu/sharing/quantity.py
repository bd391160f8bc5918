"""Quantities of a card: of its memory, above all, and what a container has of it at least.

A note can be written by whoever may edit the pod. A small number there would leave the others on the card to pay. So
the container's spec, and the ids that the kubelet gave it, count for more.
"""

from msgspec import Struct
from msgspec.structs import replace

from podgpu.model import Claim
from podgpu.model.quantity import quantity

__all__ = ["MinimumClaim", "minimum_of", "quantity", "raised", "size"]

MOST_BYTES = 1 << 44  # no card has as much


def size(value: str | int) -> int | None:
    """Read a number of bytes that a card may have."""
    found = quantity(value)
    return int(found) if found and 1 <= found <= MOST_BYTES else None


class MinimumClaim(Struct, frozen=True, kw_only=True):
    """`memory` is in bytes, `cores` are a part of all multiprocessors: limits, if there are any."""

    share: float = 0.0
    memory: int = 0
    cores: float = 0.0


def minimum_of(claim: Claim) -> MinimumClaim:
    """Take a claim as the floor of another."""
    memory, cores = claim.memory_limit_bytes, claim.core_limit_ratio
    return MinimumClaim(share=claim.share, memory=memory or 0, cores=cores or 0.0)


def raised(claim: Claim, least: MinimumClaim) -> Claim:
    """Raise a claim to what it is at least. A limit that is absent is already the highest."""
    memory, cores = claim.memory_limit_bytes, claim.core_limit_ratio
    return replace(
        claim,
        share=max(claim.share, min(least.share, 1.0)),
        memory_limit_bytes=None if memory is None else max(memory, least.memory),
        core_limit_ratio=None if cores is None else max(cores, min(least.cores, 1.0)),
    )
