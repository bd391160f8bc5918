"""Suggests what the user may have meant."""

from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return the end of an error message: the nearest known word, or else what to do instead."""
    from difflib import get_close_matches

    nearest = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean {nearest[0]}?" if nearest else otherwise
