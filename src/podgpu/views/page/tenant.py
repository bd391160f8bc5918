"""Rows below a card: the containers on it, and what belongs to none."""

from podgpu.model import Card, Rest, Tenant
from podgpu.views.glance import UNKNOWN, gib, percent, watts
from podgpu.views.outsider import is_outsider, named
from podgpu.views.page.markup import EMPTY, bar, cells, pill, text
from podgpu.views.rest import MEANINGS, REASONS
from podgpu.views.tenant import UNSEEN, is_unseen, pids

MAX_PIDS = 6
MAX_NAMED = 4


def tenant_row(card: Card, tenant: Tenant, memory_total: float | None) -> str:
    """`memory_total` is the card's or the instance's memory."""
    booking = tenant.booking
    details = [f"{text(tenant.workload.kind)} {text(tenant.workload.name)}"] if tenant.workload else []
    if running := tenant.running:
        details.append(f"pid {pids(running, MAX_PIDS)}")
    values = (
        percent(booking.sm_ratio) + bar(booking.sm_ratio),
        _memory(booking.memory_bytes, booking.memory_limit_bytes)
        + _memory_bar(booking.memory_bytes, booking.memory_limit_bytes or memory_total),
        watts(booking.power_watts),
        *[""] * 4,
        UNKNOWN if booking.processes is None else str(booking.processes),
    )
    deeper = " deep" if tenant.mig else ""
    return (
        f'<tr class="who{deeper}">{EMPTY}<td class="left wide">{_name(tenant)}{_details(details)}</td>'
        f'<td class="left wide">{_standing(tenant, card)}</td>{cells(values)}</tr>'
    )


def rest_row(rest: Rest) -> str:
    running = rest.running
    details = [MEANINGS[rest.reason]] if rest.reason in MEANINGS else []
    if whose := named(running, MAX_NAMED):
        details.append(text(whose))
    if running:
        details.append(f"pid {pids(running, MAX_PIDS)}")
    count = str(len(running)) if running else ""
    values = ("", _memory(rest.memory_bytes, None), *[""] * 5, count)
    name = REASONS.get(rest.reason, text(rest.reason))
    return (
        f'<tr class="who rest">{EMPTY}<td class="left wide" colspan="2">{name} '
        f'<span class="fine">{" · ".join(details)}</span></td>{cells(values)}</tr>'
    )


def _name(tenant: Tenant) -> str:
    one = tenant.container
    if is_outsider(one):
        return f"<b>{text(one.container)}</b>"
    return (
        f'<span class="soft">{text(one.namespace)}/</span><b>{text(one.pod)}</b>'
        f'<span class="soft">/{text(one.container)}</span>'
    )


def _details(details: list[str]) -> str:
    return f'<br><span class="fine">{" · ".join(details)}</span>' if details else ""


def _standing(tenant: Tenant, card: Card) -> str:
    """What it was given, and how its numbers were found. Nobody gives a share to those outside Kubernetes."""
    share = ""
    if tenant.booking.allocated_ratio is not None:
        share = f'<span class="share">{percent(tenant.booking.allocated_ratio)} share</span>'
    elif not is_outsider(tenant.container):
        share = pill("not given", "bad")
    method = _method(tenant, card)
    return f'{share} <span class="fine method">{method}</span>'.strip() if method else share


def _method(tenant: Tenant, card: Card) -> str:
    method = text(tenant.booking.method)
    if is_unseen(tenant, card):
        return f"{method}, {UNSEEN}" if method else UNSEEN
    return "not in use" if tenant.idle else method


def _memory(used: int | None, limit: int | None) -> str:
    if used is None and limit is None:
        return UNKNOWN
    return gib(used) if limit is None else f"{gib(used)} / {gib(limit)}"


def _memory_bar(used: int | None, total: float | None) -> str:
    return bar(used / total) if used is not None and total else ""
