"""Tables as text, read as a person would read them."""

import re
from collections import defaultdict
from collections.abc import Mapping

from tests.agreement.certainty import of_legend, of_text
from tests.agreement.facts import ADVICE, GPUS, Facts, listed, of_pod

STATES = ("idle", "waiting", "unknown")


def facts_of_table(text: str, *, names_are_whole: bool = True) -> Facts:
    lines = text.splitlines()
    count = re.search(r"([0-9,]+) GPUs?\b", lines[0])
    facts = {GPUS: count[1]} if count else {}
    facts[ADVICE] = listed(_told(lines))
    facts |= of_legend(text)
    head = next((line for line in lines if line.startswith("GPU ")), "")
    if not head or not names_are_whole:
        return facts
    ends = {title: head.index(title) + len(title) for title in ("UTIL", "MEMORY GiB", "POWER")}
    rows_of: dict[str, list[Facts]] = defaultdict(list)
    for line in lines:
        found = re.match(r" {3,5}(\S+/\S+)/\S+ ", line)
        if found:
            cells = {title: line[:end].rstrip().rsplit("  ", 1)[-1].strip() for title, end in ends.items()}
            method = line[ends["POWER"] :].split()
            rows_of[found[1]].append(_row(found[1], cells, method[0] if method else ""))
    for own in rows_of.values():
        if len(own) == 1:
            facts |= own[0]
    return facts


def _row(pod: str, cells: Mapping[str, str], method: str) -> Facts:
    return of_text(pod, cells["UTIL"]) | {
        of_pod(pod, "memory"): cells["MEMORY GiB"].split(" / ")[0],
        of_pod(pod, "power"): cells["POWER"],
        of_pod(pod, "state"): method if method in STATES else "",
    }


def _told(lines: list[str]) -> list[str]:
    """The problems of a table, each with what to do."""
    found: list[str] = []
    for line in lines:
        if line.startswith("! "):
            found.append(line[2:])
        elif found:
            found[-1] += f" {line}"
    return found


def columns(text: str) -> list[dict[str, str]]:
    """Read a table whose columns are two blanks or more apart, by where its headings stand."""
    lines = text.splitlines()
    if not lines:
        return []
    heads = [(found.group(), found.start(), found.end()) for found in re.finditer(r"\S+(?: \S+)*", lines[0])]
    rows_ = []
    for line in lines[1:]:
        cells = [(found.group(), found.start(), found.end()) for found in re.finditer(r"\S+(?: \S+)*", line)]
        row = {head: "" for head, _, _ in heads}
        for text_, start, end in cells:
            near = min(heads, key=lambda head: min(abs(head[1] - start), abs(head[2] - end)))
            row[near[0]] = text_
        rows_.append(row)
    return rows_
