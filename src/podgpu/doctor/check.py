"""What a check is, what it reads, and what it reports."""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Generic, TypeVar

from msgspec import Struct

from podgpu.catalog.agent_parts import AgentPart
from podgpu.insight.advice import next_step
from podgpu.insight.part_problems import severity_of_part
from podgpu.insight.problem_kind import CRITICAL, fault_words
from podgpu.model import Card, Claim, Cluster, Fault, Holder, PartStatus, Problem, Snapshot
from podgpu.numbers import integer
from podgpu.views.format import problem_text
from podgpu.views.text import line

REPORT = "A bug in podgpu. Please report it with `podgpu snapshot -o json`."
BY_REASON = "It depends on the reason: see docs/operations.md."


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


class CheckResult(Struct, frozen=True):
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
Judge = Callable[[Snapshot, Machine], CheckResult | Mapping[str, CheckResult]]
J = TypeVar("J")


class Check(Struct, Generic[J], frozen=True):
    """It passes when `meaning` is true; `remedy` is what to do else."""

    id: str
    meaning: str
    remedy: str
    judge: J


def check(check_id: str, meaning: str, remedy: str) -> Callable[[J], Check[J]]:
    """Make a check of the function below."""
    return lambda judge: Check(check_id, meaning, remedy, judge)


def finding(check_id: str, remedy: str, verdict: CheckResult) -> Finding:
    advice = verdict.advice
    if not advice and verdict.status in (Status.WARN, Status.FAIL):
        advice = remedy
    return Finding(id=check_id, status=verdict.status, detail=verdict.detail, advice=advice)


def passed(detail: str) -> CheckResult:
    return CheckResult(Status.PASS, detail)


def warned(detail: str, advice: str = "") -> CheckResult:
    return CheckResult(Status.WARN, detail, advice)


def failed(detail: str, advice: str = "") -> CheckResult:
    return CheckResult(Status.FAIL, detail, advice)


def skipped(detail: str) -> CheckResult:
    return CheckResult(Status.SKIP, detail)


def down(part: PartStatus) -> CheckResult:
    """Judge a part that does not work, or not fully, by its reason."""
    fault = part.fault or Fault(reason="no_reason", detail="it is down and gives no reason")
    say = failed if severity_of_part(part) == CRITICAL else warned
    return say(line(fault_words(fault)), next_step(fault, part.name))


def state_of(part: AgentPart, snapshot: Snapshot) -> PartStatus | None:
    return next((status for status in snapshot.parts if status.name == part.name), None)


def by_state(part: AgentPart, snapshot: Snapshot, fine: str) -> CheckResult | None:
    """Judge a part by its state; None if the agent does not have it."""
    if (state := state_of(part, snapshot)) is None:
        return None
    return passed(fine) if state.up else down(state)


def works(part: AgentPart, snapshot: Snapshot) -> bool:
    state = state_of(part, snapshot)
    return state is not None and state.up


def several(names: list[str], most: int = 3) -> str:
    """Write `a; b; c; 4 more`."""
    more = [f"{integer(len(names) - most)} more"] if len(names) > most else []
    return "; ".join([*names[:most], *more])


PROFILED = "sm_active_ratio"  # reported wherever there is any profiling
NO_GPU = skipped("no GPU answers")
SECOND_HAND = skipped("the values come from a page of metrics")


def wrong(seen: Snapshot | Cluster, *kinds: str) -> CheckResult | None:
    """Judge by the problems of these kinds, in the words of every screen; None if there are none."""
    if seen.insight is None:
        raise ValueError("nothing was concluded from the snapshot")
    found = [problem for problem in seen.insight.problems if problem.kind in kinds]
    return _from_problems(found, with_node=isinstance(seen, Cluster)) if found else None


def _from_problems(found: list[Problem], *, with_node: bool) -> CheckResult:
    say = failed if any(problem.severity == CRITICAL for problem in found) else warned
    steps = dict.fromkeys(line(problem.next_step) for problem in found if problem.next_step)
    return say(" ".join(problem_text(problem, with_node=with_node) for problem in found), " ".join(steps))


def answering(snapshot: Snapshot) -> list[Card]:
    return [card for card in snapshot.cards if card.fault is None]


def first_hand(snapshot: Snapshot) -> list[Card]:
    """List the answering cards whose driver is asked directly: only a driver lists processes.

    A page of metrics shows only what its exporter was configured to show.
    """
    return [card for card in answering(snapshot) if card.ability.sees_processes]


def holders(snapshot: Snapshot) -> list[Holder]:
    """The owner of each process on a GPU, once even if the process is on several."""
    found = {process.pid: process.holder for card in snapshot.cards for process in card.processes}
    return [holder for holder in found.values() if holder]


def claims(snapshot: Snapshot) -> Iterator[Claim]:
    for card in snapshot.cards:
        for tenant in card.tenants:
            yield from tenant.claims


def named(cards: list[Card], most: int = 4) -> str:
    """Write `GPU 0, 2, 5`."""
    more = f" and {integer(len(cards) - most)} more" if len(cards) > most else ""
    return "GPU " + ", ".join(str(card.gpu.index) for card in cards[:most]) + more
