"""Writes docs/doctor.md from the checks of `podgpu doctor`."""

from collections.abc import Iterable
from itertools import groupby

from podgpu.doctor import CHECKS, CLUSTER_CHECKS
from podgpu.doctor.check import Check

_PAGE = """\
# podgpu doctor

<!-- Generated from src/podgpu/doctor by `make docs`. Do not edit. -->

`podgpu doctor` reads the node a few times, as `podgpu agent` would with the same options, and reports what works, what
does not, and what to do. `podgpu doctor --url http://127.0.0.1:19400` judges the snapshot of a running agent instead.
With the address of a `podgpu cluster`, or a kubeconfig, it judges every node, and the cluster as a whole;
`--node` chooses one. `--bundle FILE` also writes an archive for a bug report: terminal.md says what is in it.

| status | meaning |
|---|---|
| `PASS` | it works |
| `WARN` | less is known than could be, or there is a problem that needs attention |
| `FAIL` | it does not work: GPUs, or their users, are missing from the numbers; or there is a critical problem |
| `SKIP` | it does not apply here, or another check has to pass first |

The exit code is 0 when no check fails, 1 when one does, and 2 for a mistake on the command line or an agent that cannot
be read. `-o json` prints the same for machines: `schema`, `node`, `version`, `demo`, `taken_at`, `checks` with `id`,
`status`, `detail` and `advice`, and `counts` by status.

A problem has the same text as on the page and in `podgpu top`. [problems.md](problems.md) lists all kinds.

Once released, an id keeps its meaning. In `sharing.*` and `part.*` the star stands for a name, as in `sharing.mig`.
The details and the advice may quote names of pods and devices. A check that breaks is
itself a failure, which says why; the others go on.
"""
# By the first word of their ids.
_AREAS = {
    "nvml.": "The driver",
    "gpu.": "The cards",
    "mig.": "MIG",
    "proc.": "Processes",
    "kubelet.": "The kubelet",
    "api.": "The API server",
    "pods.": "Pods",
    "claims.": "Claims",
    "sharing.": "Sharing systems",
    "holders.": "Holders",
    "books.": "The books",
    "node.": "The node",
    "dialect.": "Dialects",
    "names.": "Names",
    "part.": "Other parts",
    "cluster.": "The cluster",
}


def markdown(checks: Iterable[Check] = (*CHECKS, *CLUSTER_CHECKS)) -> str:
    groups = groupby(checks, key=lambda check: check.id.partition(".")[0] + ".")
    return "\n".join([_PAGE, *(_table(_AREAS[area], group) for area, group in groups)])


def _table(title: str, checks: Iterable[Check]) -> str:
    rows = [f"| `{check.id}` | {check.meaning} | {check.remedy} |" for check in checks]
    head = ["| check | it passes when | what to do |", "|---|---|---|"]
    return "\n".join([f"## {title}", "", *head, *rows, ""])
