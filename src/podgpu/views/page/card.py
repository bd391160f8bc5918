"""The table of GPUs: a row for the card, below it its instances and who uses them."""

from podgpu.model import Device, Holder, Instance, Snapshot
from podgpu.views.glance import UNKNOWN, Glance, glance, memory, percent, whole
from podgpu.views.page.markup import COLUMNS, EMPTY, bar, cells, pill, text, why
from podgpu.views.page.tenant import rest_row, tenant_row
from podgpu.views.tenancy import Tenancy, instance_of, tenancy

_LEGEND = (
    '<p class="soft">Utilisation and power of a container are means since the last reading; those of a card are of the '
    "last moment, so they may differ. <code>podgpu why POD</code> tells how a container's numbers were found.</p>"
)


def cards(snapshot: Snapshot) -> str:
    if not snapshot.devices:
        return '<h2>GPUs</h2><p class="soft">No GPU found.</p>'
    head = "".join(f"<th>{column}</th>" for column in COLUMNS)
    rows = "".join(
        _device(device, tenancy(snapshot, device), snapshot.holders) for device in snapshot.devices
    )
    return (
        '<h2>GPUs</h2><div class="box"><table><thead><tr>'
        '<th class="left">GPU</th><th class="left model">Model, containers</th>'
        f'<th class="left">State</th>{head}</tr></thead><tbody>{rows}</tbody></table></div>{_LEGEND}'
    )


def _device(device: Device, who: Tenancy, holders: tuple[Holder, ...]) -> str:
    gpu = device.gpu
    place = f"{text(gpu.node)} · " if gpu.node else ""
    model = f'{place}{text(gpu.model) or UNKNOWN}<br><span class="uuid">{text(gpu.uuid)}</span>'
    start = f'<tr class="card"><td class="index wide">{gpu.index}</td><td class="left wide">{model}</td>'
    if device.fault is not None:
        return (
            f'{start}<td class="left wide" colspan="{len(COLUMNS) + 1}">'
            f"{pill('down', 'bad')} {why(device.fault)}</td></tr>"
        )
    seen = glance(device.readings)
    state = f'<td class="left wide">{pill("MIG" if gpu.mig_enabled else "up", "good")}</td>'
    card = f"{start}{state}{_numbers(seen, sum(bool(process.kinds) for process in device.processes))}</tr>"
    instances = "".join(_instance(device, instance, who) for instance in device.instances)
    return card + instances + _others(device, who, seen, holders)


def _instance(device: Device, instance: Instance, who: Tenancy) -> str:
    mig = instance.mig
    name = f'MIG {text(mig.profile) or UNKNOWN}<br><span class="uuid">{text(mig.uuid)}</span>'
    place = f'<span class="soft place">GI {mig.gpu_instance_id}, CI {mig.compute_instance_id}</span>'
    seen = glance(instance.readings)
    tenants = [tenant for tenant in who.tenants if tenant.booking.mig == mig.uuid]
    rows = "".join(tenant_row(tenant, seen.memory_total_bytes) for tenant in tenants)
    count = sum(instance_of(device, one) == mig.uuid and bool(one.kinds) for one in device.processes)
    return (
        f'<tr class="mig">{EMPTY}<td class="left wide">{name}</td>'
        f'<td class="left wide">{place}</td>{_numbers(seen, count)}</tr>{rows}'
    )


def _others(device: Device, who: Tenancy, seen: Glance, holders: tuple[Holder, ...]) -> str:
    """Those on no instance that is listed, and what belongs to no container."""
    listed = {instance.mig.uuid for instance in device.instances}
    tenants = [tenant for tenant in who.tenants if tenant.booking.mig not in listed]
    rows = [tenant_row(tenant, seen.memory_total_bytes) for tenant in tenants]
    return "".join([*rows, *(rest_row(rest, holders) for rest in who.rest if rest.present)])


def _numbers(seen: Glance, processes: int) -> str:
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
            str(processes),
        )
    )
