"""What the client asked for: the page's format and whether to compress it."""

import re
from collections.abc import Iterator

from podgpu.views.exposition import Format

# More than any honest client lists. What follows is ignored.
MAX_ENTRIES = 64

_QUALITY = re.compile(r"0(\.[0-9]{0,3})?|1(\.0{0,3})?")
_OFFERS = {
    Format.TEXT: ("text", "plain", "0.0.4"),
    Format.OPENMETRICS: ("application", "openmetrics-text", "1.0.0"),
}


def page_format(accept: str | None) -> Format:
    """Choose what the client likes best; text when it has no preference, or none that can be met."""
    ranges = list(_entries(accept or ""))
    text, openmetrics = (_preference(ranges, form) for form in (Format.TEXT, Format.OPENMETRICS))
    return Format.OPENMETRICS if openmetrics[0] > 0 and openmetrics > text else Format.TEXT


def gzip_accepted(accept_encoding: str | None) -> bool:
    codings = {name: quality for name, _, quality in _entries(accept_encoding or "")}
    gzip = codings.get("gzip", codings.get("x-gzip", codings.get("*", 0.0)))
    return gzip > 0 and gzip >= codings.get("identity", 0.0)


def _preference(ranges: list[tuple[str, dict[str, str], float]], form: Format) -> tuple[float, int]:
    """(quality, specificity) of the most specific range that covers the format."""
    matches = [(_specificity(name, parameters, form), quality) for name, parameters, quality in ranges]
    specificity, quality = max(matches, default=(-1, 0.0))
    return (quality, specificity) if specificity >= 0 else (0.0, specificity)


def _specificity(name: str, parameters: dict[str, str], form: Format) -> int:
    """0 for `*/*` up to 3 for the very version; -1 when the range does not cover the format."""
    main, sub, version = _OFFERS[form]
    if name == "*/*":
        return 0
    if name == f"{main}/*":
        return 1
    if name != f"{main}/{sub}" or parameters.get("version", version) != version:
        return -1
    return 3 if "version" in parameters else 2


def _entries(header: str) -> Iterator[tuple[str, dict[str, str], float]]:
    """(name, parameters, quality) of each well-formed entry."""
    for entry in header.split(",", MAX_ENTRIES)[:MAX_ENTRIES]:
        name, *rest = entry.split(";")
        pairs = (parameter.partition("=") for parameter in rest)
        parameters = {key.strip().lower(): value.strip().strip('"') for key, _, value in pairs}
        quality = parameters.pop("q", "1")
        if name.strip() and _QUALITY.fullmatch(quality):
            yield name.strip().lower(), parameters, float(quality)
