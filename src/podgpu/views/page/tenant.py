"""Rows below a card: the containers on it, and what belongs to none."""

from podgpu.model import Holder
from podgpu.views.glance import UNKNOWN, gib, percent, watts
from podgpu.views.outsider import is_outsider, named
from podgpu.views.page.markup import EMPTY, bar, cells, pill, text
from podgpu.views.tenancy import MEANINGS, REASONS, Rest, Tenant, pids

MAX_PIDS = 6
MAX_NAMED = 4


def tenant_row(tenant: Tenant, memory_total: float | None) -> str:
    """`memory_total` is the card's or the instance's memory."""
    booking = tenant.booking
    details = [f"{text(tenant.workload.kind)} {text(tenant.workload.name)}"] if tenant.workload else []
    if tenant.processes:
        details.append(f"pid {pids(tenant.processes, MAX_PIDS)}")
    values = (
        percent(booking.sm_ratio) + bar(booking.sm_ratio),
        _memory(booking.memory_bytes, booking.memory_limit_bytes)
        + _memory_bar(booking.memory_bytes, booking.memory_limit_bytes or memory_total),
        watts(booking.power_watts),
        *[""] * 4,
        str(booking.processes),
    )
    deeper = " deep" if booking.mig else ""
    return (
        f'<tr class="who{deeper}">{EMPTY}<td class="left wide">{_name(tenant)}{_details(details)}</td>'
        f'<td class="left wide">{_standing(tenant)}</td>{cells(values)}</tr>'
    )


def rest_row(rest: Rest, holders: tuple[Holder, ...]) -> str:
    one = rest.remainder
    details = [MEANINGS[one.reason]] if one.reason in MEANINGS else []
    if whose := named(rest.processes, holders, MAX_NAMED):
        details.append(text(whose))
    if rest.processes:
        details.append(f"pid {pids(rest.processes, MAX_PIDS)}")
    count = max(one.processes, len(rest.processes))
    values = ("", _memory(one.memory_bytes, None), *[""] * 5, str(count) if count else "")
    name = REASONS.get(one.reason, text(one.reason))
    return (
        f'<tr class="who rest">{EMPTY}<td class="left wide" colspan="2">{name} '
        f'<span class="fine">{" · ".join(details)}</span></td>{cells(values)}</tr>'
    )


def _name(tenant: Tenant) -> str:
    one = tenant.booking.container
    if is_outsider(one):
        return f"<b>{text(one.container)}</b>"
    return (
        f'<span class="soft">{text(one.namespace)}/</span><b>{text(one.pod)}</b>'
        f'<span class="soft">/{text(one.container)}</span>'
    )


def _details(details: list[str]) -> str:
    return f'<br><span class="fine">{" · ".join(details)}</span>' if details else ""


def _standing(tenant: Tenant) -> str:
    """What it was given, and how its numbers were found. Who is outside Kubernetes is given nothing by anybody."""
    booking = tenant.booking
    share = ""
    if booking.allocated_ratio is not None:
        share = f'<span class="share">{percent(booking.allocated_ratio)} share</span>'
    elif not is_outsider(booking.container):
        share = pill("not given", "bad")
    method = "not in use" if tenant.idle else text(booking.method)
    return f'{share} <span class="fine method">{method}</span>'.strip() if method else share


def _memory(used: int | None, limit: int | None) -> str:
    if used is None and limit is None:
        return UNKNOWN
    return gib(used) if limit is None else f"{gib(used)} / {gib(limit)}"


def _memory_bar(used: int | None, total: float | None) -> str:
    return bar(used / total) if used is not None and total else ""
