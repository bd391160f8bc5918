"""Writes docs/xids.md, the reference of XIDs."""

from podgpu.catalog.xids import ACTIONS, CAUSES, UNKNOWN, XIDS, Xid
from podgpu.model import SEVERITIES
from podgpu.model.kube import grouped

_PAGE = """\
# XIDs

<!-- Generated from src/podgpu/catalog/xids.py by `make docs`. Do not edit. -->

An XID is an error that NVIDIA's driver reports. How grave one is depends on its code: podgpu judges each by the
immediate action that [NVIDIA's catalog of XIDs](https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html)
asks for. The page, `podgpu top`, `doctor` and the alerts ([alerts.md](alerts.md)) read this one table.

* `critical`: the card, a link or the driver needs a reset, a reboot or a hand. `warning`: it needs a look.
  `info`: a program failed, or nothing is wrong; the card is well, as far as the code tells.
* An hour after it was raised, an XID counts as one degree less grave, as its alert ends then. So does one of which it
  is not known when it was raised, as on a page of dcgm-exporter.
* Of several on one card, the gravest is shown: one XID often brings others.
* The cause is the usual one. The code alone proves nothing about a program or a card.

A code that is not listed counts as `{severity}`: {cause} {action}

## Actions

| action | what to do |
|---|---|
{actions}
## Codes
"""


def markdown() -> str:
    by_severity = grouped(sorted(XIDS.items()), lambda item: item[1].severity)
    actions = "".join(f"| `{name}` | {words} |\n" for name, words in ACTIONS.items())
    unknown = {"severity": UNKNOWN.severity, "cause": CAUSES[UNKNOWN.cause], "action": ACTIONS[UNKNOWN.action]}
    tables = (_table(severity, by_severity[severity]) for severity in SEVERITIES)
    return _PAGE.format(actions=actions, **unknown) + "".join(tables)


def _table(severity: str, found: list[tuple[int, Xid]]) -> str:
    rows = (f"| {code} | {xid.meaning} | {xid.cause} | `{xid.action}` |\n" for code, xid in found if code)
    return f"\n### {severity}\n\n| XID | meaning | usual cause | action |\n|---:|---|---|---|\n{''.join(rows)}"
