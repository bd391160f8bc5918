"""Whether the driver answers, and provides what podgpu needs about each card."""

from collections import Counter

from podgpu.catalog.agent_parts import DCGM, NVML
from podgpu.doctor.check import (
    BY_REASON,
    NO_GPU,
    PROFILED,
    SECOND_HAND,
    CheckResult,
    Machine,
    answering,
    by_problems,
    check,
    down,
    failed,
    first_hand,
    named,
    passed,
    several,
    skipped,
    state_of,
    warned,
)
from podgpu.insight.advice import next_step
from podgpu.insight.tenants import reading
from podgpu.model import Card, Fault, Snapshot
from podgpu.numbers import count, memory
from podgpu.views.format import guests_text
from podgpu.views.text import line

HOPPER = 9
# A card without processes has less than this in use.
MUCH_MEMORY = 2 << 30
# A card that is so busy has a process that it could name.
BUSY = 0.1
# Each of these costs single values; all others show as the fault of a card or of the source.
LOSSES = frozenset(
    {
        "implausible_value",
        "process_list_layout",
        "gpm_metrics",
        "gpm_sample",
        "listing_hung",
        "not_text",
        "refused",
        "too_many_processes",
    }
)


@check("nvml.library", "The driver's library can be opened.", BY_REASON)
def library(snapshot: Snapshot, _: Machine) -> CheckResult:
    if snapshot.demo:
        return skipped("simulated: no driver is asked")
    state = state_of(NVML, snapshot)
    if state is None:
        return SECOND_HAND
    if not state.up:
        return down(state)
    return passed(f"driver {line(snapshot.driver_version)}, NVML {line(snapshot.nvml_version)}")


@check(
    "nvml.gpus",
    "The driver lists GPUs, and each one answers.",
    "Give the pod the nvidia runtime class with NVIDIA_VISIBLE_DEVICES=all, and run nvidia-smi on the node.",
)
def gpus(snapshot: Snapshot, _: Machine) -> CheckResult:
    if _is_down(NVML.name, snapshot):
        return skipped("needs nvml.library")
    if not snapshot.cards and _is_down(DCGM.name, snapshot):
        return skipped(f"needs part.{DCGM.name}")
    guests = guests_text(snapshot.insight)
    if not snapshot.cards:
        return passed(f"no GPU is left for pods: {guests}") if guests else failed("no GPU was found")
    if found := by_problems(snapshot, "gpu_unreadable"):
        return found
    models = Counter(line(card.gpu.model) or "unnamed" for card in snapshot.cards)
    return passed(", ".join([*(f"{number} {model}" for model, number in models.items()), *filter(None, [guests])]))


@check(
    "nvml.processes",
    "The driver lists the processes on each GPU.",
    "Update the driver: 535.43 to 535.86 list processes incorrectly. Without hostPID: true it lists none.",
)
def processes(snapshot: Snapshot, _: Machine) -> CheckResult:
    if not answering(snapshot):
        return NO_GPU
    cards = first_hand(snapshot)
    if not cards:
        return skipped("a page of metrics lists none: the holder of a card is assumed to be its user")
    if partial := [card for card in cards if card.ability.knows_owners and not card.ability.sees_all]:
        return warned(f"{named(partial)}: the list of processes could not be read in full")
    if hidden := [card for card in cards if not any(card.processes) and _used(card) > MUCH_MEMORY]:
        used = memory(sum(map(_used, hidden)))
        advice = next_step(Fault(reason="no_host_pid"))
        return warned(f"{named(hidden)}: {used} in use, but the driver lists no process", advice)
    total = sum(bool(process.kinds) for card in cards for process in card.processes)
    return passed(f"{count(total, 'process')} on {count(len(cards), 'GPU')}")


@check(
    "nvml.utilization",
    "The driver says which processes keep a GPU busy.",
    "Update the driver. Meanwhile the use of processes there is unknown, not 0.",
)
def utilization(snapshot: Snapshot, _: Machine) -> CheckResult:
    if answering(snapshot) and not first_hand(snapshot):
        return SECOND_HAND
    cards = [card for card in first_hand(snapshot) if not card.gpu.mig_enabled]
    if mute := [card for card in cards if _is_mute(card)]:
        return warned(f"{named(mute)}: busy, but no call of the driver names a process")
    calls = Counter(line(card.gpu.sampled_by) for card in cards if card.gpu.sampled_by)
    if not calls:
        return skipped("no process was seen at work yet" if cards else "no GPU answers outside MIG mode")
    return passed(", ".join(f"{call} on {count(number, 'GPU')}" for call, number in sorted(calls.items())))


@check(
    "nvml.profiling",
    "Hopper and newer cards provide profiling values (GPM).",
    "Update the driver. If another program is profiling the card, stop it.",
)
def profiling(snapshot: Snapshot, _: Machine) -> CheckResult:
    if answering(snapshot) and not first_hand(snapshot):
        return SECOND_HAND
    cards = [card for card in first_hand(snapshot) if not card.gpu.mig_enabled]
    if not cards:
        return skipped("no GPU answers outside MIG mode")
    mute = [card for card in cards if not _profiles(card)]
    if not mute:
        return passed(f"{count(len(cards), 'GPU')} with profiling values")
    if able := [card for card in mute if _has_gpm(card)]:
        return warned(f"{named(able)}: no profiling values")
    if any(part.name == DCGM.name for part in snapshot.parts):
        advice = "Let dcgm-exporter export DCGM_FI_PROF_ fields of these cards: docs/sources.md has the list."
        return warned(f"{named(mute)}: no profiling values on dcgm-exporter's page", advice)
    return skipped(
        f"{named(mute)}: before Hopper there is no GPM, so SM, tensor and DRAM activity are absent; a dcgm-exporter "
        "has them: --source=nvml+dcgm adds its values"
    )


@check(
    "nvml.values",
    "No value had to be left out because it made no sense or was not available.",
    "docs/operations.md explains each reason; a newer driver fixes most.",
)
def values(snapshot: Snapshot, _: Machine) -> CheckResult:
    refused = [
        f"GPU {card.gpu.number}: {line(refused_call.call)} {refused_call.reason}"
        for card in snapshot.cards
        for refused_call in card.refused
    ]
    if refused:
        return warned(several(refused), "Run nvidia-smi -q on the node. podgpu asks again by itself.")
    if lost := [error for error in snapshot.errors if error.source == NVML.name and error.reason in LOSSES]:
        return warned("; ".join(f"{error.reason}: {error.count}" for error in lost))
    return passed("no value had to be left out") if answering(snapshot) else NO_GPU


def _is_down(name: str, snapshot: Snapshot) -> bool:
    return any(not part.up for part in snapshot.parts if part.name == name)


def _is_mute(card: Card) -> bool:
    listed = [process for process in card.processes if process.kinds]
    is_unknown = bool(listed) and all(process.sm_ratio is None for process in listed)
    return is_unknown and not card.gpu.sampled_by and (reading(card.readings, "utilization_ratio") or 0.0) >= BUSY


def _profiles(card: Card) -> bool:
    """DCGM's default list of fields has tensor activity, but not that of the SMs."""
    metrics = (PROFILED,) if _has_gpm(card) else (PROFILED, "tensor_active_ratio")
    return any(reading(card.readings, metric) is not None for metric in metrics)


def _has_gpm(card: Card) -> bool:
    major = card.gpu.compute_capability.partition(".")[0]
    return major.isascii() and major.isdigit() and int(major) >= HOPPER


def _used(card: Card) -> float:
    return reading(card.readings, "memory_used_bytes") or 0.0
