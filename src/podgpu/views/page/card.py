"""The table of GPUs: a row for the card, below it its instances and those who use them."""

from collections import Counter

from podgpu.model import Card, Instance, Snapshot
from podgpu.views.glance import UNKNOWN, Glance, glance, memory, percent, whole
from podgpu.views.page.markup import COLUMNS, EMPTY, bar, cells, pill, text, why
from podgpu.views.page.tenant import rest_row, tenant_row
from podgpu.views.rest import present
from podgpu.views.tenant import UNSEEN, UNSEEN_MEANS, any_unseen, by_instance

_LEGEND = (
    "Utilisation and power of a container are means since the previous reading; those of a card are of the last "
    "moment, so they may differ. <code>podgpu why POD</code> shows how a container's numbers were found."
)


def cards(snapshot: Snapshot) -> str:
    if not snapshot.cards:
        return '<h2>GPUs</h2><p class="soft">No GPU found.</p>'
    head = "".join(f"<th>{column}</th>" for column in COLUMNS)
    rows = "".join(map(_card, snapshot.cards))
    legend = f"{_LEGEND} <b>{UNSEEN}</b>: {UNSEEN_MEANS}." if any_unseen(snapshot.cards) else _LEGEND
    return (
        '<h2>GPUs</h2><div class="box"><table><thead><tr>'
        '<th class="left">GPU</th><th class="left model">Model, containers</th>'
        f'<th class="left">State</th>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        f'<p class="soft">{legend}</p>'
    )


def _card(card: Card) -> str:
    gpu = card.gpu
    place = f"{text(gpu.node)} · " if gpu.node else ""
    model = f'{place}{text(gpu.model) or UNKNOWN}<br><span class="uuid">{text(gpu.uuid)}</span>'
    start = f'<tr class="card"><td class="index wide">{gpu.index}</td><td class="left wide">{model}</td>'
    if card.fault is not None:
        return (
            f'{start}<td class="left wide" colspan="{len(COLUMNS) + 1}">'
            f"{pill('down', 'bad')} {why(card.fault)}</td></tr>"
        )
    seen = glance(card.readings)
    state = f'<td class="left wide">{pill("MIG" if gpu.mig_enabled else "up", "good")}</td>'
    running = Counter(process.mig for process in card.processes if process.kinds)
    numbers = _numbers(seen, _count(running.total(), is_all=card.ability.sees_all))
    return f"{start}{state}{numbers}</tr>{_below(card, seen, running)}"


def _below(card: Card, seen: Glance, running: Counter[str]) -> str:
    """Write each instance with its tenants, then those on no listed instance, then what belongs to no container."""
    tenants = by_instance(card)
    # A process that could not be placed may be on any of them.
    is_all = card.ability.sees_all and not running[""]
    rows = []
    for instance in card.instances:
        within, uuid = glance(instance.readings), instance.mig.uuid
        rows.append(_instance(instance, _numbers(within, _count(running[uuid], is_all=is_all))))
        rows += [tenant_row(card, one, within.memory_total_bytes) for one in tenants.get(uuid, ())]
    rows += [tenant_row(card, one, seen.memory_total_bytes) for one in tenants.get("", ())]
    return "".join([*rows, *map(rest_row, present(card))])


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


def _numbers(seen: Glance, processes: str) -> str:
    filled = None
    if seen.memory_used_bytes is not None and seen.memory_total_bytes:
        filled = seen.memory_used_bytes / seen.memory_total_bytes
    return cells(
        (
            percent(seen.utilization_ratio) + bar(seen.utilization_ratio),
            memory(seen) + bar(filled),
            whole(seen.power_watts, "W"),
            whole(seen.temperature_celsius, "°C"),
            percent(seen.sm_active_ratio),
            percent(seen.tensor_active_ratio),
            percent(seen.dram_active_ratio),
            processes,
        )
    )
