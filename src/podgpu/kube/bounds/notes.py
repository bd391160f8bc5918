"""What is kept of a pod's annotations and labels: what somebody reads, and no more of it than notes are long.

Their author may fill a pod up with a quarter of a MiB of annotations, for whatever reason.
"""

from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

NOTE_BYTES = 32 << 10  # all notes of a pod together
LABEL_BYTES = 16 << 10
TOO_LARGE = "note_too_large"

Names: TypeAlias = tuple[str, ...]  # prefixes


def notes(annotations: Iterable[tuple[str, str]], names: Names, errors: Counter[str]) -> dict[str, str]:
    """Keep the annotations with these names."""
    wanted = ((name, value) for name, value in annotations if name.startswith(names)) if names else ()
    return _within(wanted, NOTE_BYTES, errors)


def labels(given: Iterable[tuple[str, str]], names: Names, errors: Counter[str]) -> dict[str, str]:
    """Keep all labels, or those with these names first if there are too many."""
    found = dict(given)
    if _size(found) > LABEL_BYTES:
        found = dict(sorted(found.items(), key=lambda label: not (names and label[0].startswith(names))))
    return _within(found.items(), LABEL_BYTES, errors)


def _within(pairs: Iterable[tuple[str, str]], most: int, errors: Counter[str]) -> dict[str, str]:
    kept: dict[str, str] = {}
    left = most
    for name, value in pairs:
        size = len(name) + len(value)
        if size > left:
            errors[TOO_LARGE] += 1
            continue
        left -= size
        kept[name] = value
    return kept


def _size(pairs: dict[str, str]) -> int:
    return sum(map(len, pairs)) + sum(map(len, pairs.values()))
