"""The table of GPUs: a row for the card, below it its instances and those who use them."""

from collections import Counter

from podgpu.model import Card, Instance, Snapshot
from podgpu.numbers import UNKNOWN, celsius, gib_of, percent, watts
from podgpu.views.glance import Glance, Use, Uses, glance, switching
from podgpu.views.page.markup import COLUMNS, EMPTY, bar, cells, pill, text, use_cell, why
from podgpu.views.page.tenant import Column
from podgpu.views.rest import present
from podgpu.views.tenant import UNSEEN, UNSEEN_MEANS, any_unseen, by_instance

_LEGEND = (
    "Utilisation is of the time since the previous reading, and of the whole card for containers too; that of a MIG "
    "instance is of the instance. Power is that of the card now, divided among those on it. "
    "<code>podgpu why POD</code> shows how a container's numbers were found."
)
_BOUNDS = (
    "<b>23% (12–34)</b>: on a card with such a range, utilisation is of the last full minute. The range is what it was "
    "at least and at most."
)


def cards(snapshot: Snapshot) -> str:
    if not snapshot.cards:
        return '<h2>GPUs</h2><p class="soft">No GPU found.</p>'
    head = "".join(f"<th>{column}</th>" for column in COLUMNS)
    uses = [Uses(card, glance(card.readings).utilization_ratio) for card in snapshot.cards]
    rows = "".join(_card(*one, snapshot.taken_at) for one in zip(snapshot.cards, uses, strict=True))
    legend = f"{_LEGEND} {_BOUNDS}" if any(one.is_minute for one in uses) else _LEGEND
    if any_unseen(snapshot.cards):
        legend += f" <b>{UNSEEN}</b>: {UNSEEN_MEANS}."
    return (
        '<h2>GPUs</h2><div class="box"><table><thead><tr>'
        '<th class="left">GPU</th><th class="left model">Model, containers</th>'
        f'<th class="left">State</th>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        f'<p class="soft">{legend}</p>'
    )


def _card(card: Card, uses: Uses, now: float) -> str:
    gpu = card.gpu
    model = f'{text(gpu.model) or UNKNOWN}<br><span class="uuid">{text(gpu.uuid)}</span>'
    start = f'<tr class="card"><td class="index wide">{gpu.index}</td><td class="left wide">{model}</td>'
    if card.fault is not None:
        return (
            f'{start}<td class="left wide" colspan="{len(COLUMNS) + 1}">'
            f"{pill('down', 'bad')} {why(card.fault)}</td></tr>"
        )
    seen = glance(card.readings)
    pills = pill("MIG" if gpu.mig_enabled else "up", "good")
    if lost := switching(card):
        pills += f" {pill(f'switching {lost}', 'bad')}"
    state = f'<td class="left wide">{pills}</td>'
    running = Counter(process.mig for process in card.processes if process.kinds)
    numbers = _numbers(seen, uses.of_card, _count(running.total(), is_all=card.ability.sees_all))
    return f"{start}{state}{numbers}</tr>{_below(card, seen, running, Column(card, uses, now))}"


def _below(card: Card, seen: Glance, running: Counter[str], column: Column) -> str:
    """Write each instance with its tenants, then those on no listed instance, then what belongs to no container."""
    tenants = by_instance(card)
    # A process that could not be placed may be on any of them.
    is_all = card.ability.sees_all and not running[""]
    rows = []
    for instance in card.instances:
        within, uuid = glance(instance.readings), instance.mig.uuid
        count = _count(running[uuid], is_all=is_all)
        rows.append(_instance(instance, _numbers(within, Use(within.sm_active_ratio), count)))
        rows += [column.tenant(one, within.memory_total_bytes) for one in tenants.get(uuid, ())]
    rows += [column.tenant(one, seen.memory_total_bytes) for one in tenants.get("", ())]
    return "".join([*rows, *map(column.rest, present(card))])


def _instance(instance: Instance, numbers: str) -> str:
    mig = instance.mig
    name = f'MIG {text(mig.profile) or UNKNOWN}<br><span class="uuid">{text(mig.uuid)}</span>'
    place = f'<span class="soft place">GI {mig.gpu_instance_id}, CI {mig.compute_instance_id}</span>'
    return (
        f'<tr class="mig">{EMPTY}<td class="left wide">{name}</td>'
        f'<td class="left wide">{place}</td>{numbers}</tr>'
    )


def _count(running: int, *, is_all: bool) -> str:
    """Write `3+` where some may have been missed."""
    if is_all:
        return str(running)
    return f"{running}+" if running else UNKNOWN


def _numbers(seen: Glance, use: Use, processes: str) -> str:
    filled = None
    if seen.memory_used_bytes is not None and seen.memory_total_bytes:
        filled = seen.memory_used_bytes / seen.memory_total_bytes
    return cells(
        (
            use_cell(use),
            gib_of(seen.memory_used_bytes, seen.memory_total_bytes) + bar(filled),
            watts(seen.power_watts),
            celsius(seen.temperature_celsius),
            percent(seen.sm_active_ratio),
            percent(seen.tensor_active_ratio),
            percent(seen.dram_active_ratio),
            processes,
        )
    )
