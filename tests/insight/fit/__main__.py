"""Judge 400 workloads on 100 nodes: `python -m tests.insight.fit [WORKLOADS]`."""

import sys
from collections import Counter

from tests.insight.fit.planted import NODES, planted
from tests.insight.fit.weeks import advice, changes, overruns, wrong

MOST_CHANGED = 0.02


def main(workloads: int) -> int:
    made = list(planted(workloads))
    rows = advice(made)
    mistakes, overrun = wrong(made, rows), list(overruns(made, rows))
    changed, total = changes(made)
    print(f"{len(made)} workloads on {NODES} nodes, two weeks of minutes")
    print(", ".join(f"{number} {kind}" for kind, number in Counter(row.kind for row in rows.values()).items()))
    print(f"not as planted: {len(mistakes)}", *mistakes, sep="\n  ")
    print(f"would have run out of memory, or been used, in the third week: {len(overrun)}", *overrun, sep="\n  ")
    print(f"changed from day to day without a cause: {len(changed)} of {total}", *changed, sep="\n  ")
    return int(bool(mistakes or overrun or len(changed) > MOST_CHANGED * total))


sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 400))
