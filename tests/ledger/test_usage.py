"""What processes add up to, and when a card is watched so well that who has none is idle."""

import pytest
from msgspec.structs import replace

from podgpu.ledger.cycle import TenantKey
from podgpu.ledger.usage import is_watched, served, usages
from podgpu.model import (
    SEES_ALL,
    Ability,
    ContainerRef,
    Device,
    Gpu,
    Holder,
    Instance,
    MigInstance,
    Process,
)
from tests.tree import WATCHED

A = ContainerRef("ns", "pod-a", "main", "uid-a")
HELD = {1: Holder(pid=1, kind="pod", container=A)}
ELAPSED = 1000


def card(*processes: Process, ability: Ability = WATCHED) -> Device:
    return Device(gpu=Gpu(uuid="GPU-1", index=0), ability=ability, processes=processes)


@pytest.mark.parametrize(
    ("process", "time"),
    [
        (Process(pid=1, sm_busy_us=ELAPSED - 1), ELAPSED - 1),
        (Process(pid=1, sm_busy_us=ELAPSED), ELAPSED),
        (Process(pid=1, sm_busy_us=ELAPSED + 1), ELAPSED),
        (Process(pid=1, sm_ratio=0.5), ELAPSED // 2),
        (Process(pid=1, sm_ratio=1.5), ELAPSED),
        (Process(pid=1, sm_busy_us=0, sm_ratio=0.5), 0),
        (Process(pid=1), None),
    ],
)
def test_a_process_works_no_longer_than_there_was_time(process: Process, time: int | None) -> None:
    """The driver's samples may reach back before the interval."""
    (usage,) = usages(card(process), HELD, ELAPSED).values()
    assert usage.sm_us == time
    assert served([process], ELAPSED) == time


def test_the_time_of_two_processes_may_be_more_than_there_was() -> None:
    both = {**HELD, 2: Holder(pid=2, kind="pod", container=A)}
    busy = card(Process(pid=1, sm_busy_us=2 * ELAPSED), Process(pid=2, sm_busy_us=2 * ELAPSED))
    assert usages(busy, both, ELAPSED)[TenantKey("GPU-1", "", A)].sm_us == 2 * ELAPSED


def test_each_process_carries_its_owner_and_its_place() -> None:
    mig = MigInstance(uuid="MIG-1", gpu_instance_id=7, compute_instance_id=0)
    process = Process(pid=1, kinds=("compute",), gpu_instance_id=7)
    split = replace(card(process), instances=(Instance(mig=mig),))
    (usage,) = usages(split, HELD, ELAPSED).values()
    assert [(booked.holder, booked.mig) for booked in usage.processes] == [(HELD[1], "MIG-1")]


RUNS = Process(pid=9, kinds=("compute",))


@pytest.mark.parametrize(
    ("ability", "processes", "holders", "watched"),
    [
        (WATCHED, (), {}, True),
        (WATCHED, (RUNS,), {9: Holder(pid=9, kind="host")}, True),
        (WATCHED, (RUNS,), {9: Holder(pid=9, kind="pod", container=A)}, True),
        (WATCHED, (RUNS,), {9: Holder(pid=9, kind="pod")}, False),
        (WATCHED, (RUNS,), {9: Holder(pid=9, kind="unknown", reason="hidden")}, False),
        (WATCHED, (RUNS,), {}, False),
        (WATCHED, (RUNS,), {9: Holder(pid=9, kind="unknown", reason="exited")}, True),
        (WATCHED, (Process(pid=9),), {}, True),
        (replace(WATCHED, sees_all=False), (), {}, False),
        (SEES_ALL, (), {}, False),
        (Ability(), (), {}, False),
    ],
    ids=[
        "nobody there",
        "a host process",
        "a container's process",
        "a pod that is not listed",
        "a hidden process",
        "an owner that nobody looked up",
        "a process that has just exited",
        "a process that is no longer listed",
        "an incomplete list",
        "owners that cannot be looked up",
        "a source without processes",
    ],
)
def test_a_card_is_watched_if_every_process_is_listed_and_has_a_known_owner(
    ability: Ability, processes: tuple[Process, ...], holders: dict[int, Holder], watched: bool
) -> None:
    device = card(*processes, ability=ability)
    assert is_watched(device, usages(device, holders, ELAPSED)) == watched
