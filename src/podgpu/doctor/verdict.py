"""What a check is, what it looks at, and what it says."""

from collections.abc import Callable, Mapping
from enum import StrEnum

from msgspec import Struct

from podgpu.model import Fault, PartStatus, Snapshot
from podgpu.views.advice import next_step
from podgpu.views.glance import problem

# These pass by themselves, or somebody wanted them.
_PASSING = frozenset({"starting", "released", "not_synced", "not_ready", "throttled", "rate_limited"})


class Status(StrEnum):
    PASS = "PASS"  # noqa: S105 - no password
    WARN = "WARN"
    FAIL = "FAIL"
    SKIP = "SKIP"


class Machine(Struct, frozen=True, kw_only=True):
    """What a snapshot does not tell of where it was taken. Of an agent elsewhere only `now` is known.

    `in_pod` is true in a pod of Kubernetes, `hides_processes` where /proc shows only our own. `missing_fields` are
    those of the wanted DCGM counters that podgpu cannot give, None where no list was given.
    """

    now: float
    is_remote: bool = False
    kubelet: str = ""
    kube_api: str = ""
    in_pod: bool = False
    hides_processes: bool | None = None
    clock_synchronised: bool | None = None
    missing_fields: tuple[str, ...] | None = None


class Verdict(Struct, frozen=True):
    """Without `advice` a warning or failure gets its check's own remedy."""

    status: Status
    detail: str
    advice: str = ""


class Finding(Struct, frozen=True, kw_only=True):
    id: str
    status: Status
    detail: str
    advice: str = ""


# A check with `*` in its id gives one verdict for each name that stands there.
Judge = Callable[[Snapshot, Machine], Verdict | Mapping[str, Verdict]]


class Check(Struct, frozen=True):
    id: str
    meaning: str
    remedy: str
    judge: Judge


def passed(detail: str) -> Verdict:
    return Verdict(Status.PASS, detail)


def warned(detail: str, advice: str = "") -> Verdict:
    return Verdict(Status.WARN, detail, advice)


def failed(detail: str, advice: str = "") -> Verdict:
    return Verdict(Status.FAIL, detail, advice)


def skipped(detail: str) -> Verdict:
    return Verdict(Status.SKIP, detail)


def down(part: PartStatus) -> Verdict:
    """A part that does not work, with its reason."""
    fault = part.fault or Fault(reason="no_reason", detail="it is down and says no more")
    say = warned if fault.reason in _PASSING else failed
    return say(problem(fault), next_step(fault, part.name))


def part_of(snapshot: Snapshot, name: str) -> PartStatus | None:
    return next((part for part in snapshot.parts if part.name == name), None)


def several(names: list[str], most: int = 3) -> str:
    """Write `a; b; c; 4 more`."""
    more = [f"{len(names) - most} more"] if len(names) > most else []
    return "; ".join([*names[:most], *more])
