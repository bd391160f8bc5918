"""The status page: plain HTML without script, so it works under a strict content security policy."""

from html import escape

from podgpu.model import Device, Fault, Instance, PartStatus, Process, Snapshot
from podgpu.views.advice import next_step
from podgpu.views.glance import (
    UNKNOWN,
    Glance,
    gib,
    glance,
    holders,
    memory,
    percent,
    problem,
    seconds,
    whole,
)
from podgpu.views.style import CSS
from podgpu.views.text import line

REFRESH_SECONDS = 5
MAX_PROCESSES = 8
# The agent serves no reading older than this many intervals; neither does the page pass one off as fresh.
STALE_INTERVALS = 3

_COLUMNS = ("Utilisation", "Memory GiB", "Power", "Temperature", "SM", "Tensor", "DRAM", "Processes")
_EMPTY = ' class="empty"'
_LINKS = (
    ("/metrics", "Metrics"),
    ("/api/v1/snapshot", "JSON snapshot"),
    ("/-/healthy", "Healthy"),
    ("/-/ready", "Ready"),
)


def html(snapshot: Snapshot, now_age_seconds: float) -> bytes:
    """`now_age_seconds` is the snapshot's age when the page is asked for."""
    body = "".join(
        (
            _header(snapshot, now_age_seconds),
            _banners(snapshot, now_age_seconds),
            _parts(snapshot.parts),
            _devices(snapshot.devices),
            _footer(snapshot),
        )
    )
    demo = "DEMO " if snapshot.demo else ""
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}">'
        f"<title>{demo}podgpu {_text(snapshot.node)}</title><style>{CSS}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    ).encode()


def _header(snapshot: Snapshot, age: float) -> str:
    state = _pill("all up", good=True) if snapshot.up else _pill("degraded", good=False)
    return (
        f'<header><h1>podgpu</h1><span class="node">{_text(snapshot.node)}</span>{state}'
        f'<span class="soft age">updated {seconds(max(age, 0.0))} ago,'
        f" every {seconds(snapshot.interval_seconds)}</span></header>"
    )


def _banners(snapshot: Snapshot, age: float) -> str:
    demo = stale = ""
    if snapshot.demo:
        demo = '<p class="banner"><b>DEMO</b> These numbers are made up. No GPU of this machine is read.</p>'
    if age > STALE_INTERVALS * snapshot.interval_seconds:
        stale = '<p class="banner stale"><b>Stale</b> The agent takes no more readings. Read its log.</p>'
    return demo + stale


def _parts(parts: tuple[PartStatus, ...]) -> str:
    if not parts:
        return ""
    return f'<h2>Parts</h2><ul class="parts box">{"".join(map(_part, parts))}</ul>'


def _part(part: PartStatus) -> str:
    age = "never worked" if part.age_seconds is None else f"worked {seconds(part.age_seconds)} ago"
    why = f'<span class="why">{_why(part.fault)}</span>' if part.fault is not None else ""
    return (
        f"<li>{_pill('up', good=True) if part.up else _pill('down', good=False)}<b>{_text(part.name)}</b>"
        f'<span class="soft">{age}, took {seconds(part.duration_seconds)}</span>{why}</li>'
    )


def _why(fault: Fault) -> str:
    return f'{escape(problem(fault))}<br><span class="soft next">{escape(next_step(fault))}</span>'


def _devices(devices: tuple[Device, ...]) -> str:
    if not devices:
        return '<h2>GPUs</h2><p class="soft">No GPU found.</p>'
    head = "".join(f"<th>{column}</th>" for column in _COLUMNS)
    return (
        '<h2>GPUs</h2><div class="box"><table><thead><tr>'
        '<th class="left">GPU</th><th class="left model">Model</th>'
        f'<th class="left">State</th>{head}</tr></thead>'
        f"<tbody>{''.join(map(_device, devices))}</tbody></table></div>"
    )


def _device(device: Device) -> str:
    gpu = device.gpu
    model = f'{_text(gpu.model) or UNKNOWN}<br><span class="uuid">{_text(gpu.uuid)}</span>'
    start = f'<tr><td class="index wide">{gpu.index}</td><td class="left wide">{model}</td>'
    if device.fault is not None:
        return (
            f'{start}<td class="left wide" colspan="{len(_COLUMNS) + 1}">'
            f"{_pill('down', good=False)} {_why(device.fault)}</td></tr>"
        )
    seen = glance(device.readings)
    state = f'<td class="left wide">{_pill("MIG" if gpu.mig_enabled else "up", good=True)}</td>'
    card = f"{start}{state}{_cells(seen, seen.utilization_ratio, len(device.processes))}</tr>"
    instances = "".join(_instance(device, instance) for instance in device.instances)
    return card + instances + _processes(device)


def _instance(device: Device, instance: Instance) -> str:
    mig = instance.mig
    name = f'MIG {_text(mig.profile) or UNKNOWN}<br><span class="uuid">{_text(mig.uuid)}</span>'
    place = f'<span class="soft place">GI {mig.gpu_instance_id}, CI {mig.compute_instance_id}</span>'
    seen = glance(instance.readings)
    return (
        f'<tr class="mig"><td{_EMPTY}></td><td class="left wide">{name}</td>'
        f'<td class="left wide">{place}</td>'
        f"{_cells(seen, seen.utilization_ratio, len(holders(device, mig)))}</tr>"
    )


def _cells(seen: Glance, busy: float | None, processes: int) -> str:
    filled = None
    if seen.memory_used_bytes is not None and seen.memory_total_bytes:
        filled = seen.memory_used_bytes / seen.memory_total_bytes
    values = (
        percent(busy) + _bar(busy),
        memory(seen) + _bar(filled),
        whole(seen.power_watts, "W"),
        whole(seen.temperature_celsius, "°C"),
        percent(seen.sm_active_ratio),
        percent(seen.tensor_active_ratio),
        percent(seen.dram_active_ratio),
        str(processes),
    )
    return "".join(map(_cell, _COLUMNS, values))


def _cell(column: str, value: str) -> str:
    # A narrow screen leaves out what is unknown.
    return f'<td data-label="{column}"{_EMPTY if value == UNKNOWN else ""}>{value}</td>'


def _bar(ratio: float | None) -> str:
    if ratio is None:
        return ""
    return f'<span class="bar"><i style="width:{min(max(ratio, 0.0), 1.0) * 100:.0f}%"></i></span>'


def _processes(device: Device) -> str:
    ordered = [process for instance in device.instances for process in holders(device, instance.mig)]
    ordered += holders(device, None)
    if not ordered:
        return ""
    chips = "".join(map(_chip, ordered[:MAX_PROCESSES]))
    if len(ordered) > MAX_PROCESSES:
        chips += f'<span class="chip">+{len(ordered) - MAX_PROCESSES} more</span>'
    return (
        f'<tr class="more"><td{_EMPTY}></td><td class="left wide" colspan="{len(_COLUMNS) + 2}">'
        f'<div class="chips">{chips}</div></td></tr>'
    )


def _chip(process: Process) -> str:
    kinds = _text(" ".join(process.kinds))
    facts = [kinds]
    if process.gpu_instance_id is not None:
        facts.append(f"GI {process.gpu_instance_id}")
    if process.memory_bytes is not None:
        facts.append(f"{gib(process.memory_bytes)} GiB")
    if process.sm_ratio is not None:
        facts.append(f"SM {percent(process.sm_ratio)}")
    return f'<span class="chip"><b>{process.pid}</b> {", ".join(filter(None, facts))}</span>'


def _footer(snapshot: Snapshot) -> str:
    links = "".join(f'<a href="{path}">{name}</a>' for path, name in _LINKS)
    versions = [f"podgpu {_text(snapshot.version)}"]
    if snapshot.driver_version:
        versions.append(f"driver {_text(snapshot.driver_version)}")
    if snapshot.nvml_version:
        versions.append(f"NVML {_text(snapshot.nvml_version)}")
    return f'<footer>{links}<span class="soft">{", ".join(versions)}</span></footer>'


def _pill(word: str, *, good: bool) -> str:
    return f'<span class="pill {"good" if good else "bad"}">{word}</span>'


def _text(value: str) -> str:
    return escape(line(value))
