"""What a check is, what it reads, and what it reports."""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum

from msgspec import Struct

from podgpu.catalog.agent_parts import AgentPart
from podgpu.insight.advice import next_step
from podgpu.insight.part_problems import severity_of_part
from podgpu.insight.problem_kind import CRITICAL, INFO, fault_words
from podgpu.model import Card, Claim, Cluster, Fault, Holder, PartStatus, Snapshot
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


# It gets a snapshot and the machine, or a cluster. For an id with a `*`, there is a result for each name in its place.
Judge = Callable[..., CheckResult | Mapping[str, CheckResult]]


class Check(Struct, frozen=True):
    """It passes when `meaning` is true; `remedy` is what to do otherwise."""

    id: str
    meaning: str
    remedy: str
    judge: Judge


def check(check_id: str, meaning: str, remedy: str) -> Callable[[Judge], Check]:
    """Make a check of the function below."""
    return lambda judge: Check(check_id, meaning, remedy, judge)


def findings(check: Check, *examined: Snapshot | Machine | Cluster) -> list[Finding]:
    """A check that breaks must not take the others with it."""
    try:
        judged = check.judge(*examined)
        results = {"": judged} if isinstance(judged, CheckResult) else judged
        return [_finding(check.id.replace("*", name), check.remedy, result) for name, result in results.items()]
    except Exception as error:
        detail = line(f"this check broke, which is a bug in podgpu: {type(error).__name__}: {error}")
        return [Finding(id=check.id, status=Status.FAIL, detail=detail, advice=REPORT)]


def _finding(check_id: str, remedy: str, result: CheckResult) -> Finding:
    usual = remedy if result.status in (Status.WARN, Status.FAIL) else ""
    return Finding(id=check_id, status=result.status, detail=result.detail, advice=result.advice or usual)


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
    result = failed if severity_of_part(part) == CRITICAL else warned
    return result(line(fault_words(fault)), next_step(fault, part.name))


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


def by_problems(seen: Snapshot | Cluster, *kinds: str) -> CheckResult | None:
    """Judge by the problems of these kinds, in the words of every screen; None if there are none."""
    if seen.insight is None:
        raise ValueError("nothing was concluded from the snapshot")
    problems = [problem for problem in seen.insight.problems if problem.kind in kinds]
    if not problems:
        return None
    severities = {problem.severity for problem in problems}
    status = Status.FAIL if CRITICAL in severities else Status.PASS if severities == {INFO} else Status.WARN
    texts = [problem_text(problem, with_node=isinstance(seen, Cluster)) for problem in problems]
    steps = dict.fromkeys(line(problem.next_step) for problem in problems if problem.next_step)
    return CheckResult(status, " ".join(texts), " ".join(steps))


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
    return "GPU " + ", ".join(card.gpu.number for card in cards[:most]) + more
