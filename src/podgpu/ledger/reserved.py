"""Who has reserved how much of a device."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from podgpu.ledger.cycle import TenantKey
from podgpu.model import Claim

PARTS = 1_000_000  # shares are counted in millionths, so that they add up exactly


class Reserved(Struct, frozen=True, kw_only=True, gc=False):
    """Shares of the whole card in parts, memory limits, and the claims they come from, by account.

    Whoever has a claim and no share holds a MIG instance of unknown size.
    """

    shares: dict[TenantKey, int]
    memory_limits: dict[TenantKey, int]
    claims: dict[TenantKey, list[Claim]]

    @property
    def are_sized(self) -> bool:
        return len(self.shares) == len(self.claims)


def reserved(claims: Iterable[Claim], instance_parts: Mapping[str, int | None]) -> Reserved:
    """Add up the claims on one card. A claim on an instance is a claim on that instance's part of the card."""
    shares: dict[TenantKey, int] = {}
    limits: dict[TenantKey, int] = {}
    by_account: dict[TenantKey, list[Claim]] = {}
    for claim in claims:
        if claim.mig and claim.mig not in instance_parts:
            continue
        account = TenantKey(claim.gpu, claim.mig, claim.container)
        card = instance_parts[claim.mig] if claim.mig else PARTS
        if card is not None:
            share = round(min(max(claim.share, 0.0), 1.0) * card)
            shares[account] = min(PARTS, shares.get(account, 0) + share)
        by_account.setdefault(account, []).append(claim)
        if claim.memory_limit_bytes is not None:
            limits[account] = limits.get(account, 0) + claim.memory_limit_bytes
    return Reserved(shares=shares, memory_limits=limits, claims=by_account)
