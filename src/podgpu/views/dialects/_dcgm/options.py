"""The options of every page in dcgm-exporter's words, and its file of counters: a CSV of field, type and HELP."""

import csv
import re
from dataclasses import dataclass

from podgpu import option
from podgpu.errors import UserError
from podgpu.option.file import text_file
from podgpu.option.value import OneOf, OnOff

TYPES = ("gauge", "counter", "label")
COLUMNS = 3

_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_FORM = "write FIELD, TYPE, HELP, such as: DCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature (in C)."


@dataclass(frozen=True, slots=True)
class ListedCounter:
    """One line. `type` is one of TYPES; a `label` is a fact that every series carries."""

    field: str
    type: str
    help: str


@dataclass(frozen=True, slots=True)
class CountersFile:
    """The file as it was when it was read. A field that is listed twice counts as it is listed first."""

    path: str
    listed: tuple[ListedCounter, ...]


def counters_file(path: str, text: str) -> CountersFile:
    first: dict[str, ListedCounter] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip(' \t\r,"') and not line.lstrip().startswith("#"):
            counter = _listed(line.strip(), f"{path}: line {number}")
            first.setdefault(counter.field, counter)
    if not first:
        raise UserError(f"{path}: no line names a counter; {_FORM}")
    return CountersFile(path, tuple(first.values()))


def _listed(line: str, place: str) -> ListedCounter:
    try:
        (columns,) = csv.reader([line], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError):
        raise UserError(f"{place}: a double quote is not closed, or text follows it; {_FORM}") from None
    if len(columns) > COLUMNS:
        raise UserError(f"{place}: {len(columns)} columns; put a HELP that has commas in double quotes")
    if len(columns) < COLUMNS:
        raise UserError(f"{place}: {len(columns)} of 3 columns; {_FORM}")
    field, kind, words = map(str.strip, columns)
    if not _FIELD.fullmatch(field):
        raise UserError(f"{place}: {field[:40]!r} is not the name of a field; {_FORM}")
    if kind not in TYPES:
        raise UserError(f"{place}: {kind[:40]!r} is not a type; write gauge, counter or label")
    return ListedCounter(field, kind, words)


@dataclass(frozen=True, kw_only=True)
class DcgmPageOptions:
    collectors: CountersFile | None = option.optional(
        "--dcgm.collectors",
        group=option.DIALECTS,
        help="Counters of the dcgm pages: a CSV file as dcgm-exporter reads it.",
        parse=text_file(
            counters_file, kibibytes=1024, advice="give a file of counters, as dcgm-exporter reads it"
        ),
        default_note="dcgm-exporter's default counters",
        also_from=("DCGM_EXPORTER_COLLECTORS",),
    )
    hostname_label: str = option.single(
        "--dcgm.hostname-label",
        group=option.DIALECTS,
        help="How /metrics/dcgm spells the node's label: dcgm-exporter changed it in 4.8.3.",
        parse=OneOf(("Hostname", "hostname")),
        default="Hostname",
    )
    per_container: str = option.single(
        "--dcgm.per-container",
        group=option.DIALECTS,
        help="Whether the dcgm pages and container-json have a row for each container of a shared GPU.",
        parse=OnOff(),
        default="off",
        also_from=("KUBERNETES_VIRTUAL_GPUS",),
    )
    pod_uid: str = option.single(
        "--dcgm.pod-uid",
        group=option.DIALECTS,
        help="Whether rows of the dcgm pages carry the UID of their pod.",
        parse=OnOff(),
        default="off",
        also_from=("DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID",),
    )
    pod_labels: str = option.single(
        "--dcgm.pod-labels",
        group=option.DIALECTS,
        help="Whether rows of the dcgm pages carry the labels of their pod that --kube.pod-labels allows.",
        parse=OnOff(),
        default="off",
        also_from=("DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS",),
    )
