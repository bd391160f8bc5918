"""The snapshot for a terminal: one line a GPU, its instances and processes below."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Literal

from podgpu.model import Device, Instance, Process, Snapshot
from podgpu.views.advice import next_step
from podgpu.views.glance import UNKNOWN, Glance, gib, glance, holders, memory, percent, problem, whole
from podgpu.views.text import line

if TYPE_CHECKING:
    from rich.table import Table

MAX_PROCESSES = 5

_COLUMNS: tuple[tuple[str, int | None, Literal["left", "right"]], ...] = (
    ("GPU", 3, "left"),
    ("MODEL", None, "left"),
    ("STATE", 16, "left"),
    ("UTIL", 4, "right"),
    ("MEMORY GiB", 13, "right"),
    ("POWER", 6, "right"),
    ("TEMP", 6, "right"),
)
_TAKEN = sum((size or 0) + 2 for _, size, _ in _COLUMNS)
_MODEL_MOST = 40


def table(snapshot: Snapshot, width: int, *, colour: bool) -> str:
    from rich.console import Console

    out = StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    console.print(_title(snapshot), style="bold")
    if snapshot.devices:
        console.print(_grid(snapshot, width))
    else:
        console.print("No GPU found.")
    for note in _notes(snapshot):
        console.print(note, style="red")
    return "\n".join(text.rstrip() for text in out.getvalue().splitlines()) + "\n"


def _title(snapshot: Snapshot) -> str:
    count = len(snapshot.devices)
    words = ["DEMO" if snapshot.demo else "", line(snapshot.node), f"{count} GPU" + "s" * (count != 1)]
    if snapshot.driver_version:
        words.append(f"driver {line(snapshot.driver_version)}")
    return "  ".join(filter(None, words))


def _grid(snapshot: Snapshot, width: int) -> Table:
    from rich.table import Table

    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for heading, size, side in _COLUMNS:
        # A long name is cut; it must not push the numbers off the screen.
        most = size or min(max(width - _TAKEN, 8), _MODEL_MOST)
        grid.add_column(heading, justify=side, no_wrap=True, overflow="ellipsis", width=size, max_width=most)
    for device in snapshot.devices:
        _add_device(grid, device)
    return grid


def _add_device(grid: Table, device: Device) -> None:
    model = line(device.gpu.model).removeprefix("NVIDIA ") or UNKNOWN
    if device.fault is not None:
        _add(grid, str(device.gpu.index), model, line(device.fault.reason), style="red")
        return
    seen = glance(device.readings)
    state = "MIG" if device.gpu.mig_enabled else "up"
    _add(grid, str(device.gpu.index), model, state, *_numbers(seen, seen.utilization_ratio))
    for instance in device.instances:
        _add_instance(grid, device, instance)
    _add_processes(grid, holders(device, None), indent="  ")


def _add_instance(grid: Table, device: Device, instance: Instance) -> None:
    seen = glance(instance.readings)
    place = f"{instance.mig.gpu_instance_id}/{instance.mig.compute_instance_id}"
    profile = line(instance.mig.profile) or UNKNOWN
    _add(grid, "", f"  {profile}", place, *_numbers(seen, seen.sm_active_ratio))
    _add_processes(grid, holders(device, instance.mig), indent="    ")


def _add_processes(grid: Table, processes: list[Process], indent: str) -> None:
    for process in processes[:MAX_PROCESSES]:
        kinds = line(" ".join(process.kinds))
        _add(
            grid,
            "",
            f"{indent}pid {process.pid}",
            kinds,
            percent(process.sm_ratio),
            gib(process.memory_bytes),
            style="dim",
        )
    if len(processes) > MAX_PROCESSES:
        _add(grid, "", f"{indent}+{len(processes) - MAX_PROCESSES} more", style="dim")


def _numbers(seen: Glance, busy: float | None) -> tuple[str, str, str, str]:
    return percent(busy), memory(seen), whole(seen.power_watts, "W"), whole(seen.temperature_celsius, "°C")


def _add(grid: Table, *cells: str, style: str | None = None) -> None:
    from rich.text import Text

    # Text, not str: a name in square brackets is a name, not markup.
    grid.add_row(*(Text(cell) for cell in cells), style=style)


def _notes(snapshot: Snapshot) -> list[str]:
    """Why something is missing, and what to do about it."""
    faults = [(f"GPU {device.gpu.index}", device.fault) for device in snapshot.devices]
    faults += [(line(part.name), part.fault) for part in snapshot.parts if not part.up]
    return [f"{name}: {problem(fault)}. {next_step(fault)}" for name, fault in faults if fault is not None]
