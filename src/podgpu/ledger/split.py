"""Integers divided so that nothing is lost: the parts always add up to the whole."""

from collections.abc import Mapping
from typing import Any, TypeVar

K = TypeVar("K")


def split(total: int, weights: Mapping[K, int]) -> dict[K, int]:
    """Divide `total` by weight, by largest remainder. Equal remainders go by key, so order does not matter.

    Without any weight there is nobody to divide among, and all parts are 0.
    """
    whole = sum(weights.values())
    if whole <= 0:
        return dict.fromkeys(weights, 0)
    parts = {key: total * weight // whole for key, weight in weights.items()}
    left = total - sum(parts.values())
    if left:
        by_remainder = sorted(weights, key=lambda key: (-(total * weights[key] % whole), _order(key)))
        for key in by_remainder[:left]:
            parts[key] += 1
    return parts


def within(total: int, wanted: Mapping[K, int]) -> tuple[dict[K, int], int]:
    """Give each what it wants if that is no more than `total`, else their shares of it; return what is left."""
    if sum(wanted.values()) > total:
        return split(total, wanted), 0
    return dict(wanted), total - sum(wanted.values())


def _order(key: Any) -> Any:
    """Parties of different kinds cannot be compared with each other; their texts can."""
    return str(key)
