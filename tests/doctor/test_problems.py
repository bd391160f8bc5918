"""What is wrong is concluded elsewhere. The checks tell it, all of it, and conclude nothing again."""

from msgspec.structs import replace

from podgpu import doctor
from podgpu.doctor import Status
from podgpu.insight import conclude
from podgpu.insight.problems import KINDS
from podgpu.model import (
    Allocation,
    Booking,
    Charge,
    Claim,
    ContainerRef,
    Fault,
    PartStatus,
    Reading,
    Tenant,
    UnplacedHolding,
)
from tests.doctor.sound_node import HERE, LLAMA, NOW, PROCESS, SETTINGS, SOUND, SPLIT, TENANT, WHOLE, examine


def test_the_words_and_the_severity_are_those_of_every_screen() -> None:
    hot = Reading("clock_event", 1.0, ("hardware_thermal",))
    errors = Reading("ecc_errors_total", 2.0, ("uncorrected", "volatile", "dram"))
    assert WHOLE.balance
    idle = replace(TENANT, idle=True, held_since=NOW - 7200, booking=Booking(allocated_ratio=1.0))
    part = ContainerRef("ml", "part-0", "c")
    unsized = Tenant(container=part, claims=(Claim(gpu=WHOLE.gpu.uuid, container=part, share=0.0),))
    sick = replace(
        WHOLE,
        readings=(*WHOLE.readings, hot, errors, Reading("xid_last_code", 79), Reading("recovery_action", 1)),
        tenants=(idle, Tenant(container=ContainerRef("ml", "sly-0", "c"), processes=(PROCESS,)), unsized),
        balance=replace(WHOLE.balance, switching_ratio=0.3),
        charges=(
            Charge(container=part, charged_bytes=9 << 30, listed_bytes=1 << 30, unexplained_bytes=8 << 30),
            Charge(container=LLAMA, charged_bytes=1 << 30, listed_bytes=5 << 30, elsewhere_bytes=4 << 30),
        ),
    )
    sick = replace(
        sick, readings=tuple(reading for reading in sick.readings if reading != Reading("recovery_action", 0))
    )
    lost = replace(SPLIT, fault=Fault(reason="lost"))
    late = PartStatus(name="workloads", up=True, fault=Fault(reason="too_many"))
    unknown = Allocation(namespace="ml", pod="p", container="c", resource="example.com/gpu", device_id="X")
    nowhere = UnplacedHolding(container=ContainerRef("ml", "struck-0", "c"), system="hami", resource="nvidia.com/gpu")
    given = replace(SOUND, unclaimed=(unknown,), unplaced=(nowhere,))
    snapshot = conclude(replace(given, cards=(sick, lost), parts=(*SOUND.parts, late)), SETTINGS)
    assert snapshot.insight
    kinds = {problem.kind for problem in snapshot.insight.problems}
    assert kinds == {kind.name for kind in KINDS if kind.of_card or kind.of_snapshot} - {
        "memory_failed",
        "memory_pending",
        "part_down",
    }
    told = examine(snapshot, HERE)
    for problem in snapshot.insight.problems:
        words = problem.text.removeprefix("workloads: ").rstrip(".")
        statuses = {finding.status for finding in told if words in finding.detail}
        assert statuses == {Status.FAIL if problem.severity == "critical" else Status.WARN}, problem


def test_a_snapshot_without_conclusions_is_not_called_sound() -> None:
    findings = doctor.examine(SOUND, HERE)
    assert Status.FAIL in {finding.status for finding in findings if finding.id == "gpu.xid"}
