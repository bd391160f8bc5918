"""Parses a page of metrics in the text format, for some names only.

No page can make this raise: lines that it does not understand are counted and skipped. A page repeats the text of a
GPU's labels for each metric, so each text is parsed once and looked up from then on.
"""

import math
import re
from collections import Counter
from collections.abc import Container, Iterator

from msgspec import Struct, field

LONGEST_LINE = 64 << 10  # characters
LONGEST_NUMBER = 400
MOST_LABELS = 128
MOST_ROWS = 4096
MOST_SAMPLES = 200_000
PIECE = 256 << 10  # bytes decoded at a time, so that a page of many short lines does not become a huge list

# What DCGM writes for an unknown value, for each width of number. A counter can have a value between these.
BLANK_INT32 = range(2**31 - 16, 2**31)
BLANK_FP64 = range(2**47, 2**47 + 16)
BLANK_INT64 = 2.0**63  # as a float, which cannot hold its last bits

# Text in quotes is opaque, and a backslash escapes a quote.
_HIDDEN = r'\\ (?: \\ | " )?+ | " (?: [^"\\]++ | \\. )*+ "'
_LABEL = re.compile(
    rf"""[\s,]*+ (?P<name> (?: [^"\\=,]++ | {_HIDDEN} )*+ )
    (?P<equals> = \s*+ )?+ (?P<value> " (?: [^"\\]++ | \\. )*+ " )?+ \s*+ (?= , | \Z )""",
    re.VERBOSE | re.DOTALL,
)
_LINE = re.compile(
    rf"""\s*+ (?P<name> [^\s{{]*+ ) \s*+
    (?: \{{ (?P<labels> (?: [^"\\}}]++ | {_HIDDEN} )*+ ) \}} | (?<=\s) )
    \s*+ (?P<value> \S++ )""",
    re.VERBOSE | re.DOTALL,
)
_PLAIN_NAME = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
_IN_QUOTES = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_ESCAPE = re.compile(r'\\([\\n"])')
_NAME = "__name__"


class PageRow(Struct, frozen=True):
    """A set of labels, and the name and value of every sample that carries it.

    If a label appears more than once, `labels` has its first value and `last` its last.
    """

    labels: dict[str, str]
    last: dict[str, str]
    samples: list[tuple[str, float]] = field(default_factory=list)


class ParsedPage(Struct, frozen=True, kw_only=True):
    """Rows of wanted names come first. Those after them have no samples: only names beside the wanted carry them.

    `skipped` counts the wanted samples that were left out, by reason: `malformed`, `blank` or `too_many`.
    """

    rows: list[PageRow]
    skipped: Counter[str]


def parse(page: bytes, wanted: Container[str], beside: tuple[str, ...] = ()) -> ParsedPage:
    """Find the samples of the wanted names, and the labels of all names that begin like one of `beside`.

    Timestamps and exemplars are ignored.
    """
    reader = _PageParser(wanted, beside)
    for line in _lines(page):
        reader.read(line)
    others = (row for text, row in reader.others.items() if text not in reader.rows)
    return ParsedPage(rows=[*reader.rows.values(), *others], skipped=reader.skipped)


def _lines(page: bytes) -> Iterator[str]:
    begin = 0
    while begin < len(page):
        end = page.find(b"\n", begin + PIECE)
        end = len(page) if end < 0 else end
        yield from page[begin:end].decode(errors="replace").split("\n")
        begin = end + 1


class _PageParser:
    """The keys of `rows` are the text of the labels, and those of `others`, which hold no wanted sample."""

    def __init__(self, wanted: Container[str], beside: tuple[str, ...] = ()) -> None:
        self.rows: dict[str, PageRow] = {}
        self.others: dict[str, PageRow] = {}
        self._beside = beside
        self.skipped: Counter[str] = Counter()
        self._wanted = wanted
        self._left = MOST_SAMPLES

    def read(self, line: str) -> None:
        name, _, rest = line.partition("{")
        if name in self._wanted:
            # If this text was parsed as labels before, it really ends here: labels hold no bare brace.
            labels, brace, number = rest.rpartition("}")
            row = self.rows.get(labels) if brace else None
            if row is not None and (value := _number(number)) is not None:
                self._keep(row, name, value)
                return
        elif (words := name.split(None, 1)) and words[0] not in self._wanted:
            if name.startswith(self._beside):
                self._note(rest.rpartition("}")[0])
            return
        self._read_closely(line)

    def _note(self, text: str) -> None:
        """Keep the labels of a name that is not wanted. Nothing that is wrong with them is an error."""
        if text in self.rows or text in self.others or len(self.others) >= MOST_ROWS:
            return
        row = _row(text) if len(text) <= LONGEST_LINE else None
        if row is not None and _NAME not in row.labels:
            self.others[text] = row

    def _read_closely(self, line: str) -> None:
        if not line or line.isspace():
            return
        found = _LINE.match(line) if len(line) <= LONGEST_LINE else None
        value = _number(found["value"]) if found else None
        if found is None or value is None:
            self.skipped["malformed"] += 1
        elif found["name"]:
            self._file(found["name"], found["labels"] or "", value)
        else:
            self._file_nameless(found["labels"] or "", value)

    def _file(self, name: str, text: str, value: float) -> None:
        row = self.rows.get(text) or self._new_row(text, _row(text))
        if row is not None and name in self._wanted:
            self._keep(row, name, value)

    def _file_nameless(self, text: str, value: float) -> None:
        """In the newer text format the name may stand among the labels, in quotes."""
        new = _row(text)
        name = new.labels.pop(_NAME, "") if new else ""
        if name in self._wanted:
            key = "\n" + text  # cannot be the text of other labels: no line holds a line break
            row = self.rows.get(key) or self._new_row(key, new)
            if row is not None:
                self._keep(row, name, value)

    def _new_row(self, key: str, row: PageRow | None) -> PageRow | None:
        if row is None or _NAME in row.labels:
            self.skipped["malformed"] += 1
            return None
        if len(self.rows) >= MOST_ROWS:
            self.skipped["too_many"] += 1
            return None
        return self.rows.setdefault(key, row)

    def _keep(self, row: PageRow, name: str, value: float) -> None:
        if _is_blank(value):
            self.skipped["blank"] += 1
        elif self._left:
            self._left -= 1
            row.samples.append((name, value))
        else:
            self.skipped["too_many"] += 1


def _number(text: str) -> float | None:
    """Return the value, or None if this is not exactly one number. Python's float() would also take 1_000."""
    if len(text) > LONGEST_NUMBER or "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _is_blank(value: float) -> bool:
    if 0 <= value < BLANK_INT32.start:  # nearly all
        return False
    return (
        not math.isfinite(value)
        or value >= BLANK_INT64
        or any(blank.start <= value < blank.stop for blank in (BLANK_INT32, BLANK_FP64))
    )


def _row(text: str) -> PageRow | None:
    """Parse the text between the braces, or return None if it makes no sense. A lone name is the metric's."""
    row = PageRow({}, {})
    at = 0
    while at < len(text):
        found = _LABEL.match(text, at)
        if found is None or len(row.labels) >= MOST_LABELS:
            return None
        at = found.end()
        name, value = found["name"].strip(), found["value"]
        if not found["equals"]:
            name, value = _NAME, name or value
        # An empty value means that there is no such label, and a spare comma is harmless.
        if value and not _add(row, name, value):
            return None
    return row


def _add(row: PageRow, name: str, value: str) -> bool:
    """Keep both values of a label that appears twice: a pod may give itself a label that the exporter uses too."""
    if _IN_QUOTES.fullmatch(name):
        name = _plain(name[1:-1])
    elif not _PLAIN_NAME.fullmatch(name):
        return False
    if (name == _NAME and name in row.labels) or not _IN_QUOTES.fullmatch(value):
        return False
    labels = row.last if name in row.labels else row.labels
    labels[name] = _plain(value[1:-1])
    return True


def _plain(text: str) -> str:
    return _ESCAPE.sub(_unescaped, text) if "\\" in text else text


def _unescaped(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]
