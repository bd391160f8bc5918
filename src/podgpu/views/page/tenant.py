"""Rows below a card: the containers on it, and what belongs to none."""

from podgpu.model import Card, Rest, Tenant
from podgpu.numbers import duration, gib, gib_of, integer, percent, watts
from podgpu.views.glance import Uses
from podgpu.views.outsider import is_outsider, named
from podgpu.views.page.markup import EMPTY, bar, cells, pill, text, use_cell
from podgpu.views.rest import MEANINGS, REASONS
from podgpu.views.tenant import UNSEEN, idle_seconds, is_unseen, pids

MAX_PIDS = 6
MAX_NAMED = 4
SHORTEST_IDLE = 60.0  # seconds; whoever pauses for less is at work


class Column:
    """Those on one card, each a row. `now` is when the snapshot was taken."""

    def __init__(self, card: Card, uses: Uses, now: float) -> None:
        self._card = card
        self._uses = uses
        self._now = now

    def tenant(self, tenant: Tenant, memory_total: float | None) -> str:
        """`memory_total` is the card's or the instance's memory."""
        booking = tenant.booking
        values = (
            use_cell(self._uses.of_tenant(tenant)) + _of_instance(booking.instance_ratio),
            _memory(booking.memory_bytes, booking.memory_limit_bytes)
            + _memory_bar(booking.memory_bytes, booking.memory_limit_bytes or memory_total),
            watts(booking.power_watts),
            *[""] * 4,
            integer(booking.processes),
        )
        deeper = " deep" if tenant.mig else ""
        name = f"{_name(tenant)}{_details(self._facts(tenant))}"
        return (
            f'<tr class="who{deeper}">{EMPTY}<td class="left wide">{name}</td>'
            f'<td class="left wide">{_standing(tenant, self._card)}</td>{cells(values)}</tr>'
        )

    def rest(self, rest: Rest) -> str:
        running = rest.running
        details = [MEANINGS[rest.reason]] if rest.reason in MEANINGS else []
        if whose := named(running, MAX_NAMED):
            details.append(text(whose))
        if running:
            details.append(f"pid {pids(running, MAX_PIDS)}")
        count = integer(len(running)) if running else ""
        use = self._uses.of_rest(rest)
        util = use_cell(use) if use.shows else ""
        power = "" if rest.power_watts is None else watts(rest.power_watts)
        values = (util, _memory(rest.memory_bytes, None), power, *[""] * 4, count)
        name = REASONS.get(rest.reason, text(rest.reason))
        return (
            f'<tr class="who rest">{EMPTY}<td class="left wide" colspan="2">{name} '
            f'<span class="fine">{" · ".join(details)}</span></td>{cells(values)}</tr>'
        )

    def _facts(self, tenant: Tenant) -> list[str]:
        facts = [f"{text(tenant.workload.kind)} {text(tenant.workload.name)}"] if tenant.workload else []
        if running := tenant.running:
            facts.append(f"pid {pids(running, MAX_PIDS)}")
        unused = idle_seconds(tenant, self._now)
        if unused is not None and unused >= SHORTEST_IDLE:
            never = "" if tenant.booking.last_active_at else ", no use was seen"
            facts.append(f"idle for {duration(unused)}{never}")
        return facts


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
    elif tenant.claims:
        share = '<span class="share">share not known</span>'
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
    return gib(used) if limit is None else gib_of(used, limit)


def _memory_bar(used: int | None, total: float | None) -> str:
    return bar(used / total) if used is not None and total else ""


def _of_instance(ratio: float | None) -> str:
    return "" if ratio is None else f'<span class="fine method">{percent(ratio)} of its instance</span>'
