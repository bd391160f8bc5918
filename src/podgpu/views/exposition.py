"""Families as a Prometheus page, text 0.0.4 or OpenMetrics 1.0.0, as the client asks for it."""

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from io import BytesIO
from itertools import islice

from podgpu.catalog.row import Kind
from podgpu.views.sample_format import NOTHING
from podgpu.views.series import Family, Key


class Format(Enum):
    """The value is the Content-Type to answer with."""

    TEXT = "text/plain; version=0.0.4; charset=utf-8"
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


UNITS = frozenset({"amperes", "bytes", "celsius", "hertz", "joules", "meters", "ratio", "seconds", "volts", "watts"})

BLOCK = 500  # lines
_TEXT_TYPE = {Kind.GAUGE: "gauge", Kind.COUNTER: "counter", Kind.INFO: "gauge", Kind.SUMMARY: "summary"}


def render(families: Iterable[Family], form: Format) -> bytes:
    """Write families and samples in the order given. What is not a finite number is left out."""
    # One growing buffer instead of joined strings: touching fresh memory costs as much as the formatting.
    page = BytesIO()
    for family in families:
        head = metadata(family, form)
        for written in _blocks(family):
            page.write(f"{head}{written}".encode())
            head = ""
    page.write(end(form))
    return page.getvalue()


def metadata(family: Family, form: Format) -> str:
    """Write what stands before the samples of a family."""
    help_text = family.help.replace("\\", "\\\\").replace("\n", "\\n")
    if form is Format.TEXT:
        return f"# HELP {family.name} {help_text}\n# TYPE {family.name} {_TEXT_TYPE[family.kind]}\n"
    name, kind = _openmetrics_type(family)
    unit = name.rpartition("_")[2]
    unit_line = f"# UNIT {name} {unit}\n" if unit in UNITS and unit != name and kind != "info" else ""
    quoted = help_text.replace('"', '\\"')
    return f"# TYPE {name} {kind}\n{unit_line}# HELP {name} {quoted}\n"


def end(form: Format) -> bytes:
    return b"# EOF\n" if form is Format.OPENMETRICS else b""


def lines(family: Family) -> str:
    """Write the samples: the same in both formats."""
    return "".join(_blocks(family))


def _blocks(family: Family) -> Iterator[str]:
    """Write some lines at a time: the text of all, in a large family, would take fresh memory."""
    name = family.name
    keys, values = iter(family.samples), iter(family.samples.values())
    while some := list(islice(keys, BLOCK)):
        text = "".join(
            [
                f"{name}{key[0].block if len(key) == 1 else _joined(key)} {number}\n"
                for key, number in zip(some, family.writing(islice(values, BLOCK)), strict=True)
                if number != NOTHING
            ]
        )
        if text:
            yield text
    if family.totals:
        written = zip(family.totals, family.writing(family.totals.values()), strict=True)
        yield "".join(f"{name}{suffix} {number}\n" for suffix, number in written)


def _joined(key: Key) -> str:
    """Write the parts of a series' labels as one: `{a="b",c="d"}`, or nothing without labels."""
    text = ",".join(filter(None, key) if "" in key else key)
    return f"{{{text}}}" if text else ""


def _openmetrics_type(family: Family) -> tuple[str, str]:
    """Name and type for the metadata.

    OpenMetrics knows counters only as `_total` and infos only as `_info`. A dialect's counter of another name
    keeps the name, which dashboards depend on, and loses the type.
    """
    if family.kind is Kind.COUNTER:
        name = family.name.removesuffix("_total")
        return (name, "counter") if name != family.name else (name, "unknown")
    if family.kind is Kind.INFO:
        name = family.name.removesuffix("_info")
        return (name, "info") if name != family.name else (name, "gauge")
    return family.name, "summary" if family.kind is Kind.SUMMARY else "gauge"


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
