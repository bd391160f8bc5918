"""What a check is, what it looks at, and what it says."""

from collections.abc import Callable, Mapping
from enum import StrEnum

from msgspec import Struct

from podgpu.catalog.parts import Part
from podgpu.insight.advice import next_step
from podgpu.insight.problems import CRITICAL, fault_words, severity_of_part
from podgpu.model import Fault, PartStatus, Snapshot
from podgpu.numbers import integer
from podgpu.views.text import line


class Status(StrEnum):
    PASS = "PASS"  # noqa: S105 - no password
    WARN = "WARN"
    FAIL = "FAIL"
    SKIP = "SKIP"


class Machine(Struct, frozen=True, kw_only=True):
    """Facts about the machine that are not in its snapshot. For an agent elsewhere only `now` is known.

    `in_pod` is true in a Kubernetes pod, `hides_processes` where /proc shows only our own. `missing_fields` are the
    requested DCGM counters that podgpu cannot provide, None where no list was given. `splits_shared` is whether
    containers of a shared GPU have rows of their own on the dcgm pages, None where no address speaks dcgm.
    """

    now: float
    is_remote: bool = False
    kubelet: str = ""
    kube_api: str = ""
    in_pod: bool = False
    hides_processes: bool | None = None
    clock_synchronised: bool | None = None
    missing_fields: tuple[str, ...] | None = None
    splits_shared: bool | None = None


class Verdict(Struct, frozen=True):
    """A warning or failure without `advice` gets its check's own remedy."""

    status: Status
    detail: str
    advice: str = ""


class Finding(Struct, frozen=True, kw_only=True):
    id: str
    status: Status
    detail: str
    advice: str = ""


# A check with `*` in its id gives one verdict for each name that the star stands for.
Judge = Callable[[Snapshot, Machine], Verdict | Mapping[str, Verdict]]


class Check(Struct, frozen=True):
    id: str
    meaning: str
    remedy: str
    judge: Judge


def finding(check_id: str, remedy: str, verdict: Verdict) -> Finding:
    advice = verdict.advice
    if not advice and verdict.status in (Status.WARN, Status.FAIL):
        advice = remedy
    return Finding(id=check_id, status=verdict.status, detail=verdict.detail, advice=advice)


def passed(detail: str) -> Verdict:
    return Verdict(Status.PASS, detail)


def warned(detail: str, advice: str = "") -> Verdict:
    return Verdict(Status.WARN, detail, advice)


def failed(detail: str, advice: str = "") -> Verdict:
    return Verdict(Status.FAIL, detail, advice)


def skipped(detail: str) -> Verdict:
    return Verdict(Status.SKIP, detail)


def down(part: PartStatus) -> Verdict:
    """Judge a part that does not work, or not fully, by its reason."""
    fault = part.fault or Fault(reason="no_reason", detail="it is down and gives no reason")
    say = failed if severity_of_part(part) == CRITICAL else warned
    return say(line(fault_words(fault)), next_step(fault, part.name))


def state_of(part: Part, snapshot: Snapshot) -> PartStatus | None:
    return next((one for one in snapshot.parts if one.name == part.name), None)


def works(part: Part, snapshot: Snapshot) -> bool:
    state = state_of(part, snapshot)
    return state is not None and state.up


def several(names: list[str], most: int = 3) -> str:
    """Write `a; b; c; 4 more`."""
    more = [f"{integer(len(names) - most)} more"] if len(names) > most else []
    return "; ".join([*names[:most], *more])
