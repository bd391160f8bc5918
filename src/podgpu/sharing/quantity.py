"""Quantities of a card: of its memory, above all."""

from podgpu.model.quantity import quantity

__all__ = ["quantity", "size"]

MOST_BYTES = 1 << 44  # no card has as much


def size(value: str | int) -> int | None:
    """Read a number of bytes that a card may have."""
    found = quantity(value)
    return int(found) if found and 1 <= found <= MOST_BYTES else None
