"""The chain in words: device id, claim, processes, cgroup, numbers, method, balance."""

from collections.abc import Iterator, Sequence

from podgpu.insight.problems import fault_words
from podgpu.insight.use import EVIDENCE, IDLE, UNKNOWN, WAITING, WORKING
from podgpu.model import Booking, Card, Claim, Holder, Process, Snapshot, Tenant
from podgpu.numbers import bounds, count, exact, memory, moment, percent, watts
from podgpu.views.format import REASONS, evasion_text, switching_text, use_text
from podgpu.views.tenants import is_outsider, outsider_names
from podgpu.views.text import line
from podgpu.views.why import words
from podgpu.views.why.chain import Case, Chain
from podgpu.views.why.lines import fact, path
from podgpu.views.why.sheet import profile, sheet

_STATES = {
    IDLE: "Idle",
    WAITING: "Waiting for its first use",
    UNKNOWN: "Not known whether it uses this",
}
LEAST_WIDTH = 60
_INDENT = 4
_FOUND_BY = {"measured": "by samples", "resident": "by the log of context switches"}
_PERIODS = {"minute": "in the last full minute", "reading": "since the previous reading"}


def why(snapshot: Snapshot, namespace: str, pod: str, width: int) -> str | None:
    """Return None when the snapshot does not know the pod."""
    case = Case(snapshot, namespace, pod)
    if not case:
        return None
    width = max(width, LEAST_WIDTH)
    head = [*fact("Pod", f"{line(namespace)}/{line(pod)}", width), *_head(snapshot, case, width)]
    if f"{namespace}/{pod}" in outsider_names(snapshot):
        head += fact("Note", words.NAMESAKE, width)
    return _report(case, [*head, *_stored(snapshot, f"{namespace}/{pod}", width)], width)


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
    head += [*fact("Node", line(snapshot.node), width), *_recorded(snapshot, width)]
    head += _stored(snapshot, title, width)
    return _report(case, head, width)


def _report(case: Case, head: list[str], width: int) -> str:
    lines = [*head]
    for card, chains in case.cards:
        lines += ["", *_card(case, card, chains, width)]
    if not case.cards and not case.unclaimed:
        lines += ["", words.STORED_NOTHING if case.is_stored else words.NOTHING]
    return "\n".join([*lines, *_unclaimed(case, width)]) + "\n"


def _head(snapshot: Snapshot, case: Case, width: int) -> Iterator[str]:
    for uid in case.uids:
        yield from fact("UID", line(uid), width)
        pod = case.pods.get(uid)
        if pod and (made_for := pod.workload):
            yield from fact("Workload", f"{line(made_for.kind)} {line(made_for.name)}", width)
        phase = line(pod.phase) if pod and pod.phase else "not known: no list of pods has it"
        yield from fact("Phase", phase, width)
    yield from fact("Node", line(snapshot.node), width)
    yield from _recorded(snapshot, width)


def _recorded(snapshot: Snapshot, width: int) -> list[str]:
    return fact("REPLAY", f"as it was at {moment(snapshot.taken_at)}", width) if snapshot.replayed else []


def _stored(snapshot: Snapshot, name: str, width: int) -> list[str]:
    if not snapshot.stored:
        return []
    return fact("Note", words.STORED.format(name=line(name), node=line(snapshot.node)), width)


def _card(case: Case, card: Card, chains: Sequence[Chain], width: int) -> Iterator[str]:
    gpu = card.gpu
    yield "  ".join(filter(None, (f"GPU {gpu.index}", line(gpu.model), line(gpu.uuid))))
    if card.fault is not None:
        yield from fact("Down", line(fault_words(card.fault)), width, 2)
    if lost := switching_text(card):
        yield from fact("Switching", f"{lost} {words.SWITCHING}", width, 2)
    for chain in chains:
        yield from ("", f"  {_subject(chain, card)}")
        if len(case.uids) > 1 and chain.container is not None:
            yield from fact("UID", line(chain.container.pod_uid), width, _INDENT)
        period = card.use.period if card.use else ""
        yield from _chain(case, chain, width, period, is_silent=card.fault is not None)
        for sentence in (*_findings(case, chain, card), *_sampled(chain)):
            yield from fact("Note", sentence, width, _INDENT)
    books = sheet(card, width, 2, has_books=not case.is_stored)
    if books:
        yield from ("", "  Everybody on this GPU, since the agent started", *books)


def _subject(chain: Chain, card: Card) -> str:
    name = _chain_name(chain)
    if not chain.mig:
        return name
    return " ".join(filter(None, (f"{name}, on MIG", profile(card, chain.mig), line(chain.mig))))


def _chain_name(chain: Chain) -> str:
    if chain.container is None:
        titles = [one.holder.title for one in chain.processes if one.holder and one.holder.title]
        return line(titles[0]) if titles else "Unknown container"
    name = line(chain.container.container)
    return name if is_outsider(chain.container) else f"Container {name}"


def _chain(case: Case, chain: Chain, width: int, period: str, *, is_silent: bool) -> Iterator[str]:
    for claim in chain.claims:
        yield from () if case.is_stored else _device(claim, width)
        yield from _given(claim, width)
    for process in chain.processes:
        yield from _process(process, process.holder, width)
    if chain.tenant is not None:
        booking = chain.tenant.booking
        is_past = is_silent or chain.has_ended
        if not is_past:
            yield from _now(booking, width, with_processes=case.is_stored)
            yield from _busy(chain.tenant, period, width)
        yield from _booked(booking, width)
        if not is_past and booking.bookable:
            uses = (
                bool(chain.processes)
                or chain.tenant.idle is None
                or (case.is_stored and not chain.tenant.idle)
            )
            yield from _method(booking.method, width, uses=uses)


def _device(claim: Claim, width: int) -> Iterator[str]:
    device = f"{line(claim.device_id) or 'unknown'}, resource {line(claim.resource) or 'unknown'}"
    yield from fact("Device id", device, width, _INDENT)
    source = f"{line(claim.system) or 'unknown'}, reported by {line(claim.source) or 'unknown'}"
    yield from fact("Shared by", source, width, _INDENT)


def _given(claim: Claim, width: int) -> list[str]:
    parts = [f"{percent(claim.share)} of {'the instance' if claim.mig else 'the GPU'}"]
    if claim.memory_limit_bytes is not None:
        parts.append(f"at most {memory(claim.memory_limit_bytes)}")
    if claim.core_limit_ratio is not None:
        parts.append(f"at most {percent(claim.core_limit_ratio)} of its SMs")
    return fact("Given", ", ".join(parts), width, _INDENT)


def _process(process: Process, holder: Holder | None, width: int) -> Iterator[str]:
    facts = [f"pid {process.pid}", line(" ".join(process.kinds)) or "ended since the last reading"]
    if process.memory_bytes is not None:
        facts.append(memory(process.memory_bytes))
    if process.sm_ratio is not None:
        # The driver counts a client's time as its server's.
        facts.append("SM not measured" if "mps" in process.kinds else f"SM {percent(process.sm_ratio)}")
    if holder is not None and holder.title:
        facts += [line(holder.command), "" if holder.user is None else f"user {holder.user}"]
    if holder is not None and holder.start_time is not None:
        facts.append(f"started {holder.start_time} ticks after boot")
    yield from fact("Process", ", ".join(filter(None, facts)), width, _INDENT)
    if holder is not None and holder.reason:
        yield from fact("", f"not fully known: {line(holder.reason)}", width, _INDENT)
    if holder is not None and holder.cgroup:
        yield from path(line(holder.cgroup), width, _INDENT)


def _now(booking: Booking, width: int, *, with_processes: bool) -> list[str]:
    """`with_processes`: how many there are, where they are not listed one by one."""
    now = [count(booking.processes, "process")] if with_processes and booking.processes else []
    if booking.memory_bytes is not None:
        now.append(memory(booking.memory_bytes))
    if booking.instance_ratio is not None:
        now.append(f"SM {percent(booking.instance_ratio)} of its instance")
    return fact("Now", ", ".join(now), width, _INDENT) if now else []


def _busy(tenant: Tenant, period: str, width: int) -> list[str]:
    """Busy time and power of the same period."""
    use = tenant.use
    if use is None or (use.ratio is None and use.watts is None):
        return []
    facts = [] if use.ratio is None else [f"{use_text(use)} of the GPU's time"]
    facts += [] if use.watts is None else [watts(use.watts)]
    by = f", {_FOUND_BY.get(tenant.booking.method, 'by an estimate')}" if bounds(use.least, use.most) else ""
    return fact("Busy", f"{', '.join(facts)}, {_PERIODS.get(period, period)}{by}", width, _INDENT)


def _booked(booking: Booking, width: int) -> list[str]:
    if not booking.bookable:
        return fact("Booked", words.UNSIZED, width, _INDENT)
    so_far = (
        f"busy {exact(booking.busy_us, 6)} s, {exact(booking.energy_mj, 3)} J, "
        f"allocated {exact(booking.allocated_us, 6)} s"
    )
    if booking.resident_us is not None:
        so_far += f", on the GPU {exact(booking.resident_us, 6)} s"
    return fact("Booked", so_far, width, _INDENT)


def _method(method: str, width: int, *, uses: bool) -> list[str]:
    name = f"{line(method)}. " if method else ""
    return fact("Method", name + words.METHODS.get(method if uses else "", ""), width, _INDENT)


def _findings(case: Case, chain: Chain, card: Card) -> Iterator[str]:
    tenant = chain.tenant
    for cards in dict.fromkeys(claim.ruled_out for claim in chain.claims if claim.ruled_out):
        names = [f"GPU {case.numbers[one]} ({line(one)})" for one in cards if one in case.numbers]
        yield f"{words.SETTLED} {' and '.join(names) or 'another card'}."
    if chain.has_ended:
        yield words.ENDED
    elif card.fault is not None:
        yield words.SILENT
    elif chain.container is None:
        yield _homeless(chain.processes[0].holder)
    elif chain.processes and not chain.claims and not is_outsider(chain.container):
        yield _not_given(case, chain)
    elif tenant is not None and tenant.idle is None and not case.is_stored:
        yield words.UNSURE if card.ability.knows_owners else words.BLIND
    if tenant is None or chain.has_ended:
        return
    yield from _holding(tenant, is_stored=case.is_stored)
    if tenant.held_since is not None:
        yield f"Its pod has held this since {moment(tenant.held_since)}."
    if tenant.booking.last_active_at is not None and not chain.processes:
        yield f"Last active {moment(tenant.booking.last_active_at)}."


def _holding(tenant: Tenant, *, is_stored: bool) -> Iterator[str]:
    """Whether it uses what it holds, in the words of every other screen."""
    held = tenant.holding
    if held is None or held.state == WORKING:
        return
    since = f" since {moment(held.since)}" if held.since is not None else ""
    is_counted = is_stored and held.evidence == "no_process"
    how = words.STORED_IDLE if is_counted else EVIDENCE.get(held.evidence, held.evidence)
    yield f"{_STATES[held.state]}{since}: {how}."


def _sampled(chain: Chain) -> Iterator[str]:
    """Whether samples are to be believed."""
    if chain.tenant is None or chain.has_ended:
        return
    booking = chain.tenant.booking
    if missed := evasion_text(booking.sampling):
        yield f"{words.EVADES} {missed}."
    elif booking.band and booking.band.undersampled and booking.sampling is None:
        yield words.UNDERSAMPLED


def _not_given(case: Case, chain: Chain) -> str:
    """Why somebody without a claim is on the card."""
    if any(one.holder is not None and one.holder.serves for one in chain.processes):
        return words.SERVER
    return words.INIT if case.is_init(chain.container) and case.has_claims else words.NOT_GIVEN


def _homeless(holder: Holder | None) -> str:
    """Why a process has no account of its own."""
    if holder is None or not holder.title:
        return words.NO_CONTAINER
    return f"{words.OUTSIDE} {REASONS.get(holder.kind, line(holder.kind))}."


def _unclaimed(case: Case, width: int) -> Iterator[str]:
    for one in case.unclaimed:
        yield ""
        yield from fact(
            "Not known", f"container {line(one.container)} was given {line(one.device_id)}", width
        )
        why = words.DISPUTED if one.disputed else words.NOT_UNDERSTOOD
        yield from fact("", f"of {line(one.resource)}: {why}", width)
