"""The chain in words: device id, claim, processes, cgroup, numbers, method, balance."""

from collections.abc import Iterator
from datetime import UTC, datetime

from podgpu.model import Booking, Claim, Device, Holder, Process, Snapshot
from podgpu.views.glance import gib, percent, problem, watts
from podgpu.views.outsider import is_outsider, outsider_names
from podgpu.views.tenancy import REASONS, processes_visible
from podgpu.views.text import line
from podgpu.views.why import words
from podgpu.views.why.chain import Case, Chain
from podgpu.views.why.lines import fact, path
from podgpu.views.why.sheet import decimal, profile, sheet

LEAST_WIDTH = 60
_INDENT = 4


def why(snapshot: Snapshot, namespace: str, pod: str, width: int) -> str | None:
    """Return None when the snapshot does not know the pod."""
    case = Case(snapshot, namespace, pod)
    if not case:
        return None
    width = max(width, LEAST_WIDTH)
    head = [*fact("Pod", f"{line(namespace)}/{line(pod)}", width), *_head(snapshot, case, width)]
    if f"{namespace}/{pod}" in outsider_names(snapshot):
        head += fact("Note", words.NAMESAKE, width)
    return _report(snapshot, case, head, width)


def why_outsider(snapshot: Snapshot, title: str, width: int) -> str | None:
    """Return None when the snapshot knows nobody of that title."""
    case = Case(snapshot, "", "", title)
    if not title or not case:
        return None
    width = max(width, LEAST_WIDTH)
    head = fact("Owner", f"{line(title)}, outside Kubernetes", width)
    system = title.partition("/")[0] if title.count("/") == 1 else "session"
    if known_by := words.OUTSIDERS.get(system):
        head += fact("Known by", known_by, width)
    head += fact("Node", line(snapshot.node), width)
    return _report(snapshot, case, head, width)


def _report(snapshot: Snapshot, case: Case, head: list[str], width: int) -> str:
    lines = [*head]
    cards = case.cards()
    for uuid in cards:
        lines += ["", *_card(snapshot, case, uuid, width)]
    if not cards and not case.unclaimed:
        lines += ["", words.NOTHING]
    return "\n".join([*lines, *_unclaimed(case, width)]) + "\n"


def _head(snapshot: Snapshot, case: Case, width: int) -> Iterator[str]:
    for uid in case.uids:
        yield from fact("UID", line(uid), width)
        if made_for := snapshot.workloads.get(uid):
            yield from fact("Workload", f"{line(made_for.kind)} {line(made_for.name)}", width)
        pod = case.pods.get(uid)
        phase = line(pod.phase) if pod and pod.phase else "not known: no list of pods has it"
        yield from fact("Phase", phase, width)
    yield from fact("Node", line(snapshot.node), width)


def _card(snapshot: Snapshot, case: Case, uuid: str, width: int) -> Iterator[str]:
    device = next((one for one in snapshot.devices if one.gpu.uuid == uuid), None)
    yield _title(uuid, device)
    if device is not None and device.fault is not None:
        yield from fact("Down", problem(device.fault), width, 2)
    for chain in case.chains(uuid):
        yield from ("", f"  {_subject(chain, device)}")
        if len(case.uids) > 1 and chain.container is not None:
            yield from fact("UID", line(chain.container.pod_uid), width, _INDENT)
        yield from _chain(chain, width, visible=processes_visible(snapshot))
        for sentence in _findings(case, chain, visible=processes_visible(snapshot)):
            yield from fact("Note", sentence, width, _INDENT)
    books = sheet(snapshot, uuid, width, 2)
    if books:
        yield from ("", "  Everybody on this GPU, since the agent started", *books)


def _title(uuid: str, device: Device | None) -> str:
    if device is None:
        return f"{line(uuid)}, which the driver does not list"
    return "  ".join(filter(None, (f"GPU {device.gpu.index}", line(device.gpu.model), line(uuid))))


def _subject(chain: Chain, device: Device | None) -> str:
    name = _chain_name(chain)
    if not chain.mig:
        return name
    return " ".join(filter(None, (f"{name}, on MIG", profile(device, chain.mig), line(chain.mig))))


def _chain_name(chain: Chain) -> str:
    if chain.container is None:
        titles = [holder.title for _, holder in chain.processes if holder.title]
        return line(titles[0]) if titles else "Unknown container"
    name = line(chain.container.container)
    return name if is_outsider(chain.container) else f"Container {name}"


def _chain(chain: Chain, width: int, *, visible: bool) -> Iterator[str]:
    for claim in chain.claims:
        yield from _claim(claim, width)
    for process, holder in chain.processes:
        yield from _process(process, holder, width)
    if chain.booking is not None:
        yield from _booking(chain.booking, width, uses=bool(chain.processes) or not visible)


def _claim(claim: Claim, width: int) -> Iterator[str]:
    device = f"{line(claim.device_id) or 'not told'}, resource {line(claim.resource) or 'not told'}"
    yield from fact("Device id", device, width, _INDENT)
    source = f"{line(claim.system) or 'unknown'}, told by {line(claim.source) or 'unknown'}"
    yield from fact("Shared by", source, width, _INDENT)
    parts = [f"{percent(claim.share)} of {'the instance' if claim.mig else 'the GPU'}"]
    if claim.memory_limit_bytes is not None:
        parts.append(f"at most {gib(claim.memory_limit_bytes)} GiB")
    if claim.core_limit_ratio is not None:
        parts.append(f"at most {percent(claim.core_limit_ratio)} of its SMs")
    yield from fact("Given", ", ".join(parts), width, _INDENT)


def _process(process: Process, holder: Holder, width: int) -> Iterator[str]:
    facts = [f"pid {process.pid}", line(" ".join(process.kinds)) or "ended since the last reading"]
    if process.memory_bytes is not None:
        facts.append(f"{gib(process.memory_bytes)} GiB")
    if process.sm_ratio is not None:
        # The driver counts a client's time as its server's.
        facts.append("SM not measured" if "mps" in process.kinds else f"SM {percent(process.sm_ratio)}")
    if holder.title:
        facts += [line(holder.command), "" if holder.user is None else f"user {holder.user}"]
    if holder.start_time is not None:
        facts.append(f"started {holder.start_time} ticks after boot")
    yield from fact("Process", ", ".join(filter(None, facts)), width, _INDENT)
    if holder.reason:
        yield from fact("", f"not fully known: {line(holder.reason)}", width, _INDENT)
    if holder.cgroup:
        yield from path(line(holder.cgroup), width, _INDENT)


def _booking(booking: Booking, width: int, *, uses: bool) -> Iterator[str]:
    now = []
    if booking.memory_bytes is not None:
        now.append(f"{gib(booking.memory_bytes)} GiB")
    if booking.sm_ratio is not None:
        now.append(f"SM {percent(booking.sm_ratio)}")
    if booking.power_watts is not None:
        now.append(watts(booking.power_watts))
    if now and not booking.ended:
        yield from fact("Now", ", ".join(now), width, _INDENT)
    so_far = (
        f"busy {decimal(booking.busy_us, 6)} s, {decimal(booking.energy_mj, 3)} J, "
        f"allocated {decimal(booking.allocated_us, 6)} s"
    )
    yield from fact("Booked", so_far, width, _INDENT)
    if not booking.ended:
        method = f"{line(booking.method)}. " if booking.method else ""
        meaning = words.METHODS.get(booking.method if uses else "", "")
        yield from fact("Method", method + meaning, width, _INDENT)


def _findings(case: Case, chain: Chain, *, visible: bool) -> Iterator[str]:
    booking = chain.booking
    if booking is not None and booking.ended:
        yield words.ENDED
    elif chain.container is None:
        yield _homeless(chain.processes[0][1])
    elif chain.processes and not chain.claims and not is_outsider(chain.container):
        yield _not_given(case, chain)
    elif chain.claims and not chain.processes:
        yield words.NOT_USED if visible else words.UNSEEN
    if booking is not None and booking.last_active_at is not None and not chain.processes:
        yield f"Last active {_moment(booking.last_active_at)}."


def _not_given(case: Case, chain: Chain) -> str:
    """Why somebody without a claim is on the card."""
    if any(holder.serves for _, holder in chain.processes):
        return words.SERVER
    return words.INIT if case.is_init(chain.container) and case.claims else words.NOT_GIVEN


def _homeless(holder: Holder) -> str:
    """Why a process has no account of its own."""
    kind = REASONS.get(holder.kind, line(holder.kind))
    return f"{words.OUTSIDE} {kind}." if holder.title else words.NO_CONTAINER


def _unclaimed(case: Case, width: int) -> Iterator[str]:
    for one in case.unclaimed:
        yield ""
        yield from fact(
            "Not known", f"container {line(one.container)} was given {line(one.device_id)}", width
        )
        yield from fact("", f"of {line(one.resource)}: {words.NOT_UNDERSTOOD}", width)


def _moment(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "at a time that makes no sense"
