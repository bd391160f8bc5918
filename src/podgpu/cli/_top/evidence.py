"""What a row is made of, shown below it when it is opened."""

from collections.abc import Iterator
from itertools import islice
from shlex import quote

from podgpu.cli._top.styled import BOLD, DIM, PLAIN, RED, YELLOW, Line
from podgpu.insight.card_problems import switching_text
from podgpu.insight.rows import SummaryItem, gpus_of, pods_of
from podgpu.insight.tenants import Placement, pod_name
from podgpu.model import Process, Rest, Use
from podgpu.numbers import gib, memory, percent, watts
from podgpu.views.format import REASONS, use_text, visible_rest
from podgpu.views.tenants import owner_titles
from podgpu.views.text import fitted, line

MOST_LINES = 200
_INDENT = "    "
_NAME = 34


def evidence(view: str, entry: SummaryItem) -> list[Line]:
    found = list(islice(_EVIDENCE[view](entry), MOST_LINES + 1))
    if len(found) > MOST_LINES:
        found[MOST_LINES] = [(f"{_INDENT}and more", DIM)]
    return found or [[(f"{_INDENT}{entry.row.detail or 'nothing more is known'}", DIM)]]


def _pod(entry: SummaryItem) -> Iterator[Line]:
    if entry.row.detail:
        yield [(_INDENT + line(entry.row.detail), YELLOW)]
    for place in entry.places:
        yield from _place(place)
    ref = entry.places[0].tenant.container if entry.places else None
    if ref is not None:
        yield [(f"{_INDENT}podgpu why {quote(line(pod_name(ref)))} shows all the evidence", DIM)]


def _place(place: Placement) -> Iterator[Line]:
    tenant, gpu = place.tenant, place.on.card.gpu
    where = f"GPU {gpu.number}" + (" MIG" if tenant.mig else "")
    facts = [f"{where} of {line(place.on.snapshot.node)}"]
    if tenant.booking.allocated_ratio is not None:
        facts.append(f"given {percent(tenant.booking.allocated_ratio)}")
    facts += [
        use_text(tenant.use),
        memory(tenant.booking.memory_bytes),
        watts(tenant.use.watts if tenant.use else None),
    ]
    if tenant.booking.method:
        facts.append(f"by {line(tenant.booking.method)}")
    yield [(f"{_INDENT}{line(tenant.container.container)}  ", BOLD), ("  ".join(facts), PLAIN)]
    for claim in tenant.claims:
        words = (claim.resource, claim.device_id, claim.system and f"shared by {claim.system}")
        source = f"reported by {line(claim.source)}" if claim.source else ""
        yield [(f"{_INDENT}  claim    {'  '.join(filter(None, (*map(line, words), source)))}", DIM)]
    for process in tenant.running:
        yield _process(process)


def _process(process: Process) -> Line:
    facts = [f"pid {process.pid}", line(" ".join(process.kinds))]
    facts += [] if process.memory_bytes is None else [memory(process.memory_bytes)]
    facts += [] if process.sm_ratio is None or "mps" in process.kinds else [f"SM {percent(process.sm_ratio)}"]
    if process.holder is not None and process.holder.command:
        facts.append(line(process.holder.command))
    return [(f"{_INDENT}  process  {'  '.join(facts)}", DIM)]


def _members(entry: SummaryItem) -> Iterator[Line]:
    """List the pods of a workload or a namespace, the busiest first."""
    for row in sorted((pod.row for pod in pods_of(entry.places)), key=lambda row: -(row.use_ratio or 0.0)):
        yield _row(line(row.title), row.use, row.memory_used_bytes, row.power_watts, line(row.state))


def _gpu(entry: SummaryItem) -> Iterator[Line]:
    if entry.row.detail:
        yield [(_INDENT + line(entry.row.detail), RED)]
    yield from _members(entry)
    for on in entry.cards:
        if lost := switching_text(on.card):
            yield [(f"{_INDENT}{lost} of its time goes into switching between tenants: use MPS or MIG", YELLOW)]
        for rest in visible_rest(on.card):
            yield _rest(rest)


def _rest(rest: Rest) -> Line:
    whose = owner_titles(rest.running, 2)
    name = REASONS.get(rest.reason, line(rest.reason)) + (f" ({whose})" if whose else "")
    return [(text, DIM) for text, _ in _row(name, rest.use, rest.memory_bytes, rest.use.watts if rest.use else None)]


def _node(entry: SummaryItem) -> Iterator[Line]:
    if entry.row.detail:
        yield [(_INDENT + line(entry.row.detail), RED)]
    for row in (gpu.row for gpu in gpus_of(entry.cards)):
        name = f"GPU {row.gpus[0]}  {line(row.model)}"
        yield _row(name, row.use, row.memory_used_bytes, row.power_watts, line(row.state))


def _row(name: str, use: Use | None, used: int | None, power: float | None, state: str = "") -> Line:
    numbers = f"{use_text(use):>14}  {gib(used):>7}  {watts(power):>7}  "
    return [(f"{_INDENT}{fitted(name, _NAME)}  {numbers}", PLAIN), (state, YELLOW)]


_EVIDENCE = {"pods": _pod, "workloads": _members, "namespaces": _members, "gpus": _gpu, "nodes": _node}
