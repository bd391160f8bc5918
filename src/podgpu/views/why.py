"""How do you know? The evidence in words: device id, claim, processes, cgroup, numbers, method, balance."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from podgpu.catalog.xids import named
from podgpu.insight import commands
from podgpu.insight.card_problems import adds_up, is_much, present_words, switching_text
from podgpu.insight.problem_kind import fault_words
from podgpu.insight.tenants import IDLE, UNKNOWN, WAITING, WORKING, is_outsider
from podgpu.model import ENDED, REPRESENTED, Booking, Card, Charge, Claim, Holder, Process, Rest, Snapshot, Tenant
from podgpu.numbers import UNKNOWN as NO_NUMBER
from podgpu.numbers import bounds, count, exact, memory, moment, percent, watts
from podgpu.views import why_sentences as sentences
from podgpu.views.format import REASONS, use_text
from podgpu.views.tenants import full_name, outsider_names
from podgpu.views.text import GAP, line, shortened, table_row, width_of
from podgpu.views.why_evidence import ContainerEvidence, PodEvidence

LEAST_WIDTH = 60
_LABEL = 11  # columns for the word before a fact
_INDENT = 4
_STATES = {
    IDLE: "Idle",
    WAITING: "Waiting for its first use",
    UNKNOWN: "Not known whether it uses this",
}
_FOUND_BY = {
    "measured": "by samples",
    "checked": "by samples and checks of the log",
    "resident": "by the log of context switches",
}
_PERIODS = {"minute": "in the last full minute", "reading": "since the previous reading"}

_HEADINGS = ("memory bytes", "busy seconds", "energy joules")
_UNBALANCED = "The books do NOT balance. Please report this with the JSON snapshot."
_PATH = "/"  # marks a path, which is folded at its slashes

# A word and the text after it.
Fact = tuple[str, str]
# Name, memory in bytes, busy time in µs and energy in mJ.
BalanceRow = tuple[str, int | None, int, int]


def why(snapshot: Snapshot, namespace: str, pod: str, width: int) -> str | None:
    """Return None when the snapshot does not know the pod."""
    evidence, name = PodEvidence(snapshot, namespace, pod), f"{namespace}/{pod}"
    if not evidence:
        return None
    head = [("Pod", f"{line(namespace)}/{line(pod)}"), *_pods(evidence), *_node(snapshot)]
    head += [("Note", sentences.NAMESAKE)] * (name in outsider_names(snapshot))
    return _report(evidence, [*head, *_stored(snapshot, name)], width)


def why_outsider(snapshot: Snapshot, title: str, width: int) -> str | None:
    """Return None when the snapshot knows no owner of that title."""
    evidence = PodEvidence(snapshot, "", "", title)
    if not title or not evidence:
        return None
    system = "session" if title.count("/") == 2 else title.partition("/")[0]
    known_by = sentences.OUTSIDERS.get(system)
    head = [("Owner", f"{line(title)}, outside Kubernetes")]
    head += [("Known by", known_by)] if known_by else []
    return _report(evidence, [*head, *_node(snapshot), *_stored(snapshot, title)], width)


def _report(evidence: PodEvidence, head: Iterable[Fact], width: int) -> str:
    width = max(width, LEAST_WIDTH)
    lines = [*_wrapped(head, width)]
    for card, containers in evidence.cards:
        lines += ["", *_card(evidence, card, containers, width)]
    if not (evidence.cards or evidence.unclaimed or evidence.unplaced):
        lines += ["", sentences.STORED_NOTHING if evidence.is_stored else sentences.NOTHING]
    for holding in evidence.unplaced:
        given = f"container {line(holding.container.container)} was given {holding.devices} of {line(holding.resource)}"
        lines += ["", *_wrapped([("Not known", given), ("", sentences.ON_NO_CARD)], width)]
    for allocation in evidence.unclaimed:
        given = f"container {line(allocation.container)} was given {line(allocation.device_id)}"
        reason = sentences.DISPUTED if allocation.disputed else sentences.NOT_UNDERSTOOD
        lines += ["", *_wrapped([("Not known", given), ("", f"of {line(allocation.resource)}: {reason}")], width)]
    return "\n".join(lines) + "\n"


def _wrapped(facts: Iterable[Fact], width: int, indent: int = 0) -> Iterator[str]:
    """Write `Label      text`, the text wrapped below itself."""
    margin = " " * (indent + _LABEL)
    for label, text in facts:
        if label == _PATH:
            yield from (margin + piece for piece in _folded(text, width - len(margin)))
        else:
            head = f"{' ' * indent}{label:<{_LABEL}}"
            yield from textwrap.wrap(text, width, initial_indent=head, subsequent_indent=margin, break_on_hyphens=False)


def _folded_words(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=" " * _INDENT, break_on_hyphens=False)


def _folded(path: str, room: int) -> Iterator[str]:
    while len(path) > room:
        cut = path.rfind("/", 1, room)
        cut = room if cut <= 0 else cut
        yield path[:cut]
        path = path[cut:]
    yield path


def _pods(evidence: PodEvidence) -> Iterator[Fact]:
    for uid in evidence.uids:
        yield "UID", line(uid)
        pod = evidence.pods.get(uid)
        if pod and pod.workload:
            yield "Workload", f"{line(pod.workload.kind)} {line(pod.workload.name)}"
        yield "Phase", line(pod.phase) if pod and pod.phase else "not known: no list of pods has it"


def _node(snapshot: Snapshot) -> Iterator[Fact]:
    yield "Node", line(snapshot.node)
    if snapshot.replayed:
        yield "REPLAY", f"as it was at {moment(snapshot.taken_at)}"


def _stored(snapshot: Snapshot, name: str) -> list[Fact]:
    note = sentences.STORED.format(name=commands.word(name), url=commands.word(commands.agent_url(snapshot.node)))
    return [("Note", note)] if snapshot.stored else []


def _card(evidence: PodEvidence, card: Card, containers: Sequence[ContainerEvidence], width: int) -> Iterator[str]:
    gpu = card.gpu
    yield from _folded_words("  ".join(filter(None, (f"GPU {gpu.number}", line(gpu.model), line(gpu.uuid)))), width)
    yield from _wrapped(_on_card(evidence, card), width, 2)
    for container in containers:
        yield from ("", *_folded_words(f"  {_subject(container, card)}", width))
        yield from _wrapped(_container(evidence, container, card), width, _INDENT)
    books = _balance(card, width - 2, is_checked=not evidence.is_stored)
    if books:
        yield from ("", "  All bookings of this GPU, since the agent started", *(f"  {row}" for row in books))


def _on_card(evidence: PodEvidence, card: Card) -> Iterator[Fact]:
    if card.fault is not None:
        yield "Down", line(fault_words(card.fault))
    if lost := switching_text(card):
        yield "Switching", f"{lost} {sentences.SWITCHING}"
    if card.use is not None and card.use.note:
        yield "Sharing", line(card.use.note)
    for charge in evidence.charges(card):
        yield from _charged(charge)
    # XIDs that were raised while it was on the card: it may have caused them, or suffered from them.
    for record in card.xids:
        if any(map(evidence.owns, record.present or ())):
            yield "XID", f"{named(record.xid)} at {moment(record.at)},{present_words(record)}."


def _charged(charge: Charge) -> Iterator[Fact]:
    """Write the kernel's figure beside the driver's."""
    listed = "an unknown amount" if charge.listed_bytes is None else memory(charge.listed_bytes)
    yield "Charged", f"{memory(charge.charged_bytes)} by the kernel to container {line(charge.container.container)},"
    yield "", f"whose processes have {listed} by the driver"
    if is_much(charge.unexplained_bytes, charge):
        yield "Note", f"{memory(charge.unexplained_bytes)} {sentences.UNEXPLAINED}"
    if is_much(charge.elsewhere_bytes, charge):
        yield "Note", f"{memory(charge.elsewhere_bytes)} {sentences.ELSEWHERE}"


def _subject(container: ContainerEvidence, card: Card) -> str:
    name = _container_name(container)
    if not container.mig:
        return name
    profile = _profiles(card).get(container.mig, "")
    return " ".join(filter(None, (f"{name}, on MIG", profile, line(container.mig))))


def _container_name(container: ContainerEvidence) -> str:
    if container.container is None:
        holders = [process.holder for process in container.processes]
        titles = [holder.title for holder in holders if holder and holder.title]
        return line(titles[0]) if titles else "Unknown container"
    name = line(container.container.container) or "not known"
    return name if is_outsider(container.container) else f"Container {name}"


def _container(evidence: PodEvidence, container: ContainerEvidence, card: Card) -> Iterator[Fact]:
    if len(evidence.uids) > 1 and container.container is not None:
        yield "UID", line(container.container.pod_uid)
    for claim in container.claims:
        yield from () if evidence.is_stored else _device(claim)
        yield _given(claim)
    for process in container.processes:
        yield from _process(process, process.holder)
    if container.tenant is not None:
        yield from _used(container, container.tenant, card, is_stored=evidence.is_stored)
    for sentence in _findings(evidence, container, card):
        yield "Note", sentence


def _used(container: ContainerEvidence, tenant: Tenant, card: Card, *, is_stored: bool) -> Iterator[Fact]:
    booking = tenant.booking
    is_past = card.fault is not None or container.has_ended
    if not is_past:
        yield from _now(booking, with_processes=is_stored)
        yield from _busy(tenant, card.use.period if card.use else "")
    yield "Booked", _booked(booking, card, is_instance=bool(tenant.mig))
    if not is_past and booking.bookable:
        name = f"{line(booking.method)}. " if booking.method else ""
        has_processes = bool(container.processes)
        yield "Method", name + sentences.method_text(tenant, has_processes=has_processes, is_stored=is_stored)


def _device(claim: Claim) -> Iterator[Fact]:
    yield "Device id", f"{line(claim.device_id) or 'unknown'}, resource {line(claim.resource) or 'unknown'}"
    yield "Shared by", f"{line(claim.system) or 'unknown'}, reported by {line(claim.source) or 'unknown'}"


def _given(claim: Claim) -> Fact:
    share = percent(claim.share) if claim.share else "a share of unknown size"  # which is 0
    parts = [f"{share} of {'the instance' if claim.mig else 'the GPU'}"]
    if claim.memory_limit_bytes is not None:
        parts.append(f"at most {memory(claim.memory_limit_bytes)}")
    if claim.core_limit_ratio is not None:
        parts.append(f"at most {percent(claim.core_limit_ratio)} of its SMs")
    return "Given", ", ".join(parts)


def _process(process: Process, holder: Holder | None) -> Iterator[Fact]:
    facts = [f"pid {process.pid}", line(" ".join(process.kinds)) or "ended since the last reading"]
    if process.memory_bytes is not None:
        facts.append(memory(process.memory_bytes))
    if process.sm_ratio is not None:
        # The driver counts a client's time as its server's.
        facts.append("SM not measured" if "mps" in process.kinds else f"SM {percent(process.sm_ratio)}")
    if holder is not None and holder.title:
        facts += [line(holder.command), "" if holder.user is None else f"user {holder.user}"]
    if holder is not None and holder.started_at is not None:
        facts.append(f"started {moment(holder.started_at)}")
    yield "Process", ", ".join(filter(None, facts))
    if holder is not None and holder.reason:
        yield "", f"not fully known: {line(holder.reason)}"
    if holder is not None and holder.cgroup:
        yield _PATH, line(holder.cgroup)


def _now(booking: Booking, *, with_processes: bool) -> Iterator[Fact]:
    """With `with_processes`, also how many processes there are, since they are not listed."""
    now = [count(booking.processes, "process")] if with_processes and booking.processes else []
    if booking.memory_bytes is not None:
        now.append(memory(booking.memory_bytes))
    if booking.instance_ratio is not None:
        now.append(f"SM {percent(booking.instance_ratio)} of its instance")
    if now:
        yield "Now", ", ".join(now)


def _busy(tenant: Tenant, period: str) -> Iterator[Fact]:
    """Busy time and power of the same period."""
    use = tenant.use
    if use is None or (use.ratio is None and use.watts is None):
        return
    facts = [] if use.ratio is None else [f"{use_text(use)} of the GPU's time"]
    facts += [] if use.watts is None else [watts(use.watts)]
    how = f", {use.certainty}" if use.certainty else ""
    by = f" {_FOUND_BY.get(tenant.booking.method, 'by claims')}" if how and bounds(*use.range) else ""
    yield "Busy", f"{', '.join(facts)}, {_PERIODS.get(period, period)}{how}{by}"
    if use.likely_least is not None and bounds(use.least, use.most):
        yield "Proven", f"between {percent(use.least)} and {percent(use.most)} of the GPU's time"


def _booked(booking: Booking, card: Card, *, is_instance: bool) -> str:
    if not booking.bookable:
        if not card.balance:
            return sentences.UNBOOKED
        return sentences.UNSIZED_INSTANCE if is_instance else sentences.UNSIZED
    so_far = (
        f"busy {exact(booking.busy_us, 6)} s, {exact(booking.energy_mj, 3)} J, "
        f"allocated {exact(booking.allocated_us, 6)} s"
    )
    on_gpu = "" if booking.resident_us is None else f", on the GPU {exact(booking.resident_us, 6)} s"
    return so_far + on_gpu


def _findings(evidence: PodEvidence, container: ContainerEvidence, card: Card) -> Iterator[str]:
    tenant = container.tenant
    for uuids in dict.fromkeys(claim.ruled_out for claim in container.claims if claim.ruled_out):
        names = [f"GPU {evidence.gpus[uuid].number} ({line(uuid)})" for uuid in uuids if uuid in evidence.gpus]
        yield f"{sentences.SETTLED} {' and '.join(names) or 'another card'}."
    if container.has_ended:
        yield sentences.ENDED
    elif card.fault is not None:
        yield sentences.SILENT
    elif container.container is None:
        yield _no_container(container.processes[0].holder)
    elif sentence := _without_claim(container):
        yield sentence
    elif tenant is not None and tenant.idle is None and not evidence.is_stored:
        yield sentences.UNSURE if card.ability.knows_owners else sentences.BLIND
    if tenant is not None and not container.has_ended:
        yield from _of_tenant(tenant, is_stored=evidence.is_stored)


def _of_tenant(tenant: Tenant, *, is_stored: bool) -> Iterator[str]:
    if tenant.running and not tenant.container.container:
        yield sentences.NAMELESS
    yield from _holding(tenant, is_stored=is_stored)
    if tenant.held_since is not None:
        yield f"Its pod has held this since {moment(tenant.held_since)}."
    if tenant.booking.last_active_at is not None and not tenant.processes:
        yield f"Last active {moment(tenant.booking.last_active_at)}."
    yield from _sampled(tenant.booking)


def _holding(tenant: Tenant, *, is_stored: bool) -> Iterator[str]:
    """Whether it uses what it holds, in the words of every other screen."""
    held = tenant.holding
    if held is None or held.state == WORKING:
        return
    since = f" since {moment(held.since)}" if held.since is not None else ""
    yield f"{_STATES[held.state]}{since}: {sentences.how_held(held, is_stored=is_stored)}."


def _sampled(booking: Booking) -> Iterator[str]:
    """Whether samples are to be believed."""
    seen = booking.sampling
    if seen is not None and seen.found != REPRESENTED:
        named = f"{percent(seen.resident_ratio)} of the GPU's busy time was its own, samples name it"
        yield f"{sentences.MISSAMPLED} By the log of context switches, {named} {percent(seen.named_ratio)}."


def _without_claim(container: ContainerEvidence) -> str:
    """Why a container without a claim is on the card."""
    if container.tenant is not None:
        return sentences.WITHOUT_CLAIM.get(container.tenant.without_claim or "", "")
    serves = any(process.holder is not None and process.holder.serves for process in container.processes)
    return sentences.SERVER if serves else ""


def _no_container(holder: Holder | None) -> str:
    """Why a process has no booking of its own."""
    if holder is None or not holder.title:
        return sentences.NO_CONTAINER
    return f"{sentences.OUTSIDE} {REASONS.get(holder.kind, line(holder.kind))}."


def _balance(card: Card, width: int, *, is_checked: bool) -> list[str]:
    """Write all bookings of a card, their sum, and what they must add up to."""
    profiles, balance = _profiles(card), card.balance
    rows = [_tenant_row(tenant, profiles) for tenant in card.tenants]
    rows += [_tenant_row(tenant, profiles, "ended:") for tenant in card.ended]
    rows += [_rest_row(rest) for rest in card.rest if rest.memory_bytes or rest.busy_us or rest.energy_mj]
    if not rows or balance is None:
        return []
    known = [row[1] for row in rows if row[1] is not None]
    rows += [
        ("sum", sum(known) if known else None, sum(row[2] for row in rows), sum(row[3] for row in rows)),
        ("booked of the GPU", balance.memory_bytes, balance.busy_us, balance.energy_mj),
    ]
    lines = _book_lines(rows, width)
    if is_checked:
        lines += textwrap.wrap("The books balance." if adds_up(card) else _UNBALANCED, width)
    return lines


def _book_lines(rows: Iterable[BalanceRow], width: int) -> list[str]:
    """A name too long for its column has a line of its own, so that no name is cut and no number moves."""
    cells = [["", *_HEADINGS]]
    for name, size, busy_us, energy_mj in rows:
        used = NO_NUMBER if size is None else exact(size, 0)
        cells.append([name, used, exact(busy_us, 6), exact(energy_mj, 3)])
    longest, *sizes = (max(map(width_of, column)) for column in zip(*cells, strict=True))
    room = min(longest, width - sum(size + GAP for size in sizes))
    lines = []
    for name, *numbers in cells:
        is_long = width_of(name) > room
        lines += [shortened(name, width)] * is_long
        lines.append(table_row(("" if is_long else name, *numbers), (room, *sizes), range(1, len(cells[0]))))
    return lines


def _profiles(card: Card) -> dict[str, str]:
    return {instance.mig.uuid: line(instance.mig.profile) for instance in card.instances}


def _tenant_row(tenant: Tenant, profiles: dict[str, str], state: str = "") -> BalanceRow:
    name = " ".join(filter(None, (state, profiles.get(tenant.mig, ""), full_name(tenant.container))))
    return name, tenant.booking.memory_bytes, tenant.booking.busy_us, tenant.booking.energy_mj


def _rest_row(rest: Rest) -> BalanceRow:
    reason = REASONS.get(rest.reason, line(rest.reason))
    name = reason if rest.reason == ENDED else f"no pod: {reason}"
    return name, rest.memory_bytes, rest.busy_us, rest.energy_mj
