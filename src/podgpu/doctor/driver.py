"""Whether the driver answers, and tells what podgpu needs of each card."""

from collections import Counter
from math import isfinite

from podgpu.doctor.verdict import Machine, Verdict, down, failed, part_of, passed, several, skipped, warned
from podgpu.model import Device, Fault, Reading, Snapshot
from podgpu.views.advice import next_step
from podgpu.views.glance import gib, problem
from podgpu.views.text import line

PART = "nvml"
PAGES = "dcgm"
PROFILED = "sm_active_ratio"  # whoever profiles at all tells this
HOPPER = 9
# A card with nobody on it has less than this in use.
MUCH_MEMORY = 2 << 30
# Of these one costs single values; all others show as the fault of a card or of the source.
LOSSES = frozenset(
    {"implausible_value", "process_list_layout", "gpm_metrics", "gpm_sample", "listing_hung", "not_text"}
)
NO_GPU = skipped("no GPU answers")


def library(snapshot: Snapshot, _: Machine) -> Verdict:
    if snapshot.demo:
        return skipped("simulated: no driver is asked")
    part = part_of(snapshot, PART)
    if part is None:
        return skipped("the numbers come from elsewhere")
    if not part.up:
        return down(part)
    return passed(f"driver {line(snapshot.driver_version)}, NVML {line(snapshot.nvml_version)}")


def gpus(snapshot: Snapshot, _: Machine) -> Verdict:
    if any(not part.up for part in snapshot.parts if part.name == PART):
        return skipped("needs nvml.library")
    if not snapshot.devices and any(not part.up for part in snapshot.parts if part.name == PAGES):
        return skipped(f"needs part.{PAGES}")
    if not snapshot.devices:
        return failed("no GPU was found")
    silent = [(device.gpu.index, device.fault) for device in snapshot.devices if device.fault]
    if silent:
        told = several([f"GPU {index}: {problem(fault)}" for index, fault in silent])
        return failed(told, next_step(silent[0][1]))
    models = Counter(line(device.gpu.model) or "unnamed" for device in snapshot.devices)
    return passed(", ".join(f"{count} {model}" for model, count in models.items()))


def is_by_pages(snapshot: Snapshot) -> bool:
    """Whether pages of metrics are all there is to go by."""
    return part_of(snapshot, PAGES) is not None and part_of(snapshot, PART) is None


def profiling(snapshot: Snapshot, _: Machine) -> Verdict:
    if not snapshot.demo and part_of(snapshot, PART) is None:
        return skipped("the numbers come from elsewhere")
    cards = [device for device in answering(snapshot) if not device.gpu.mig_enabled]
    able = [device for device in cards if _may_profile(device)]
    if not cards:
        return skipped("no GPU answers outside MIG mode")
    if not able:
        return skipped("cards before Hopper have no GPM: SM and tensor activity are absent")
    mute = [device for device in able if number(device.readings, PROFILED) is None]
    if mute:
        return warned(f"{named(mute)}: no profiling values")
    return passed(f"GPM answers on {count(len(able), 'GPU')}")


def processes(snapshot: Snapshot, _: Machine) -> Verdict:
    cards = answering(snapshot)
    if not cards:
        return NO_GPU
    if not snapshot.demo and part_of(snapshot, PART) is None:
        return skipped("a page of metrics lists none: who holds a card is taken for its user")
    unlisted = [device for device in cards if not device.processes_known]
    if unlisted:
        return warned(f"{named(unlisted)}: the list of processes could not be read in full")
    hidden = [device for device in cards if not device.processes and _used(device) > MUCH_MEMORY]
    if hidden:
        used = gib(sum(map(_used, hidden)))
        advice = next_step(Fault(reason="no_host_pid"))
        return warned(f"{named(hidden)}: {used} GiB in use, and the driver lists no process", advice)
    total = sum(bool(process.kinds) for device in cards for process in device.processes)
    return passed(f"{count(total, 'process', 'processes')} on {count(len(cards), 'GPU')}")


def values(snapshot: Snapshot, _: Machine) -> Verdict:
    lost = [one for one in snapshot.errors if one.source == PART and one.reason in LOSSES]
    if lost:
        return warned("; ".join(f"{one.reason}: {one.count}" for one in lost))
    return passed("no value had to be left out") if answering(snapshot) else NO_GPU


def answering(snapshot: Snapshot) -> list[Device]:
    return [device for device in snapshot.devices if device.fault is None]


def number(readings: tuple[Reading, ...], metric: str) -> float | None:
    return next((one.value for one in readings if one.metric == metric and isfinite(one.value)), None)


def named(devices: list[Device], most: int = 4) -> str:
    """Write `GPU 0, 2, 5`."""
    more = f" and {len(devices) - most} more" if len(devices) > most else ""
    return "GPU " + ", ".join(str(device.gpu.index) for device in devices[:most]) + more


def count(things: int, one: str, many: str = "") -> str:
    return f"{things} {one if things == 1 else many or one + 's'}"


def _may_profile(device: Device) -> bool:
    """Whether it is a Hopper or newer, or says nothing of its age and profiles all the same."""
    major = device.gpu.compute_capability.partition(".")[0]
    told = number(device.readings, PROFILED) is not None
    return told or (major.isascii() and major.isdigit() and int(major) >= HOPPER)


def _used(device: Device) -> float:
    return number(device.readings, "memory_used_bytes") or 0.0
