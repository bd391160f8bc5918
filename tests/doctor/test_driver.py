"""What the driver answers, and what it should: each check by example."""

import pytest
from msgspec.structs import replace

from podgpu.doctor import Status
from podgpu.model import ErrorCount, PartStatus
from tests.doctor.sound_node import SOUND, SPLIT, WHOLE, found, with_readings


def test_a_card_before_hopper_is_not_blamed_for_what_it_cannot_do() -> None:
    old = replace(WHOLE, gpu=replace(WHOLE.gpu, compute_capability="8.0"), readings=())
    finding = found("nvml.profiling", cards=(old,))
    assert finding.status is Status.SKIP and "--source=nvml+dcgm adds its values" in finding.detail


def test_a_page_without_profiling_values_says_which_fields_are_missing() -> None:
    old = replace(WHOLE, gpu=replace(WHOLE.gpu, compute_capability="8.0"), readings=())
    parts = (*SOUND.parts, PartStatus(name="dcgm", up=True))
    finding = found("nvml.profiling", cards=(old,), parts=parts)
    assert finding.status is Status.WARN and "DCGM_FI_PROF_" in finding.advice
    profiled = with_readings(old, tensor_active_ratio=0.5)
    assert found("nvml.profiling", cards=(profiled,), parts=parts).status is Status.PASS


@pytest.mark.parametrize("is_node_seen", [True, False])
def test_memory_in_use_without_a_process_points_at_the_pid_namespace(is_node_seen: bool) -> None:
    ability = replace(WHOLE.ability, sees_all=is_node_seen, knows_owners=is_node_seen)
    hidden = replace(WHOLE, tenants=(), ability=ability)
    finding = found("nvml.processes", cards=(hidden, SPLIT))
    assert finding.detail == "GPU 0: 20.0 GiB in use, but the driver lists no process"
    assert "hostPID" in finding.advice


def test_a_list_of_processes_that_could_not_be_read_is_a_warning() -> None:
    partial = replace(WHOLE, ability=replace(WHOLE.ability, sees_all=False))
    finding = found("nvml.processes", cards=(partial,))
    assert finding.status is Status.WARN
    assert finding.detail == "GPU 0: the list of processes could not be read in full"


def test_the_call_that_names_busy_processes_is_shown_for_each_kind_of_card() -> None:
    older = replace(WHOLE, gpu=replace(WHOLE.gpu, uuid="GPU-2", sampled_by="ProcessUtilization"))
    finding = found("nvml.utilization", cards=(WHOLE, older, older, SPLIT))
    assert finding.status is Status.PASS
    assert finding.detail == "ProcessUtilization on 2 GPUs, ProcessesUtilizationInfo on 1 GPU"


def test_a_busy_card_of_which_no_process_is_named_is_a_warning() -> None:
    quiet = replace(WHOLE, gpu=replace(WHOLE.gpu, sampled_by=None))
    assert found("nvml.utilization", cards=(quiet,)).status is Status.SKIP
    finding = found("nvml.utilization", cards=(with_readings(quiet, utilization_ratio=0.6), SPLIT))
    assert finding.status is Status.WARN
    assert finding.detail == "GPU 0: busy, but no call of the driver names a process"
    assert "unknown, not 0" in finding.advice


def test_values_that_were_left_out_are_counted() -> None:
    finding = found("nvml.values", errors=(ErrorCount(source="nvml", reason="process_list_layout", count=3),))
    assert (finding.status, finding.detail) == (Status.WARN, "process_list_layout: 3")
