"""Writes the dashboards, or says which of them are stale, conclude something themselves, or would be cut."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.dashboards import agent, bills, cluster, conclusions, health, layout, namespace, sharing, workload
from tools.dashboards.dashboard import Dashboard

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path("deploy/dashboards")

DASHBOARDS: tuple[Dashboard, ...] = (
    cluster.DASHBOARD,
    namespace.DASHBOARD,
    workload.DASHBOARD,
    bills.DASHBOARD,
    sharing.DASHBOARD,
    health.DASHBOARD,
    agent.DASHBOARD,
)


def path_of(dashboard: Dashboard) -> Path:
    return FOLDER / f"{dashboard.uid}.json"


def write(root: Path) -> None:
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    for dashboard in DASHBOARDS:
        (root / path_of(dashboard)).write_text(dashboard.render(), encoding="utf-8")


def stale(root: Path) -> list[str]:
    """Paths of the dashboards that are missing, outdated, or not written by any source."""
    wanted = {root / path_of(dashboard): dashboard.render() for dashboard in DASHBOARDS}
    found = {path: path.read_text(encoding="utf-8") for path in (root / FOLDER).glob("*.json")}
    return sorted(
        str(path.relative_to(root)) for path in wanted.keys() | found.keys() if wanted.get(path) != found.get(path)
    )


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.dashboards", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a dashboard is stale")
    if not parser.parse_args(arguments).check:
        write(root)
        return 0
    paths = stale(root)
    for path in paths:
        sys.stderr.write(f"{path} is stale: run make dashboards\n")
    faults = [fault for board in DASHBOARDS for check in (conclusions, layout) for fault in check.complaints(board)]
    for fault in faults:
        sys.stderr.write(f"{fault}\n")
    return 1 if paths or faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
