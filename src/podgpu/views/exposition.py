"""Families as a Prometheus page: text 0.0.4 or OpenMetrics 1.0.0."""

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


UNITS = frozenset(
    {"amperes", "bytes", "celsius", "hertz", "joules", "meters", "ratio", "seconds", "volts", "watts"}
)

BLOCK = 500  # lines
_TEXT_TYPE = {Kind.GAUGE: "gauge", Kind.COUNTER: "counter", Kind.INFO: "gauge"}


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
    return _text_metadata(family) if form is Format.TEXT else _openmetrics_metadata(family)


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


def _joined(key: Key) -> str:
    """Write the parts of a series' labels as one: `{a="b",c="d"}`, or nothing without labels."""
    text = ",".join([labels for labels in key if labels])
    return f"{{{text}}}" if text else ""


def _text_metadata(family: Family) -> str:
    help_text = family.help.replace("\\", "\\\\").replace("\n", "\\n")
    return f"# HELP {family.name} {help_text}\n# TYPE {family.name} {_TEXT_TYPE[family.kind]}\n"


def _openmetrics_metadata(family: Family) -> str:
    name, kind = _openmetrics_type(family)
    help_text = family.help.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    unit = name.rpartition("_")[2]
    unit_line = f"# UNIT {name} {unit}\n" if unit in UNITS and unit != name and kind != "info" else ""
    return f"# TYPE {name} {kind}\n{unit_line}# HELP {name} {help_text}\n"


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
    return family.name, "gauge"
