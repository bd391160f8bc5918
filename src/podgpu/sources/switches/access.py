"""Whether this process could read the driver's log of context switches, without trying."""

from functools import cache
from pathlib import Path

from podgpu.sources.child import sees_node
from podgpu.sources.switches import layout
from podgpu.sources.switches.driver import CONTROL_NODE

_SYS_ADMIN = 21  # the capability's number


def may_read_log(driver_version: str) -> bool:
    """Whether the driver is known, and this process may see the processes of all users in its log."""
    return is_known(driver_version) and _is_allowed()


def is_known(driver_version: str) -> bool:
    branch = driver_version.partition(".")[0]
    return branch.isdecimal() and int(branch) in layout.BRANCHES


@cache
def _is_allowed() -> bool:
    return sees_node() and Path(CONTROL_NODE).exists() and _has_capability()


def _has_capability() -> bool:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return False
    effective = next((line.split()[1] for line in lines if line.startswith("CapEff:")), "0")
    return bool(int(effective, 16) >> _SYS_ADMIN & 1)
