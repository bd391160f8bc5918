"""What changed between two JSON documents, as a merge patch. docs/api.md describes it."""

from typing import Any

Object = dict[str, Any]

_ABSENT = object()


def changes(before: Object, after: Object) -> Object:
    """Return what turns one into the other: a JSON merge patch (RFC 7396), with one addition.

    An object laid upon an array changes elements by their number; an array of another length comes whole.
    Null removes a key. It is never a value: what is unknown is absent from our documents.
    """
    found: Object = {}
    for key, new in after.items():
        old = before.get(key, _ABSENT)
        if old != new:
            found[key] = _change(old, new)
    return found | dict.fromkeys(before.keys() - after.keys())


def _change(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return changes(old, new)
    if _are_alike(old, new):
        pairs = enumerate(zip(old, new, strict=True))
        return {str(number): changes(one, other) for number, (one, other) in pairs if one != other}
    return new


def _are_alike(old: Any, new: Any) -> bool:
    """Whether both are lists of as many objects."""
    return (
        isinstance(old, list)
        and isinstance(new, list)
        and len(old) == len(new)
        and all(isinstance(one, dict) for one in (*old, *new))
    )
