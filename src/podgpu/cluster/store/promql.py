"""Which series to ask for, in PromQL."""

import re
from collections.abc import Iterable, Mapping

from podgpu.errors import UserError

_MATCHER = r'[a-zA-Z_][a-zA-Z0-9_]*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\]|\\.)*"'
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")
_MATCHERS = re.compile(rf"{_MATCHER}(?:\s*,\s*{_MATCHER})*")


def matchers(text: str) -> str:
    """Take label matchers as PromQL writes them, with or without braces."""
    inside = text.strip().removeprefix("{").removesuffix("}").strip()
    if not _MATCHERS.fullmatch(inside):
        raise UserError(
            f"""{text!r} is not a list of label matchers; write it like cluster="prod",job="podgpu\""""
        )
    return inside


def any_of(label: str, values: Iterable[str]) -> str:
    """Match any of the values, whatever characters they have."""
    pattern = "|".join(_SPECIAL.sub(r"\\\g<0>", value) for value in values)
    return f"{label}=~{quoted(pattern)}"


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


_MOVED = "exported_"


def own_labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Undo what a scrape without `honor_labels` does: it renames labels that it has other values for.

    Without this, everything would be booked to the pod of the agent itself.
    """
    if _MOVED not in " ".join(labels):  # as most are, and there are millions
        return labels
    moved = {name.removeprefix(_MOVED): value for name, value in labels.items() if name.startswith(_MOVED)}
    return {**labels, **moved} if moved else labels
