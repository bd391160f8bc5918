"""Each check by example: what it says, and what it tells the reader to do."""

import re
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podgpu.doctor import CHECKS, Machine, Status
from podgpu.insight.advice import next_step
from podgpu.model import (
    Ability,
    Allocation,
    Booking,
    Claim,
    ContainerRef,
    Fault,
    Holder,
    Owner,
    PartStatus,
    Process,
    Rest,
    SharingStatus,
    Snapshot,
    Tenant,
)
from tests.doctor.sound_node import (
    CARD,
    GIB,
    HERE,
    HOLDER,
    LLAMA,
    NOW,
    PROCESS,
    REST,
    SOUND,
    SPLIT,
    TENANT,
    WHOLE,
    examine,
    found,
    held_by,
    with_down,
    with_readings,
    without,
)

# As a page of metrics shows them.
PAGE = tuple(replace(card, ability=Ability()) for card in (WHOLE, SPLIT))
ELSEWHERE = Machine(now=NOW + 1, is_remote=True)


def test_on_a_sound_node_every_check_passes_and_gives_no_advice() -> None:
    findings = examine(SOUND, HERE)
    assert {finding.status for finding in findings} == {Status.PASS}
    assert not any(finding.advice for finding in findings)


def test_ids_are_unique_dotted_and_stand_by_area() -> None:
    ids = [check.id for check in CHECKS]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z]+\.([a-z]+(-[a-z]+)*|\*)", check_id) for check_id in ids)
    areas = [check_id.partition(".")[0] for check_id in ids]
    assert len([area for area, _ in groupby(areas)]) == len(set(areas))


def test_every_check_says_what_it_means_and_what_to_do() -> None:
    assert all(check.meaning.endswith(".") and check.remedy.endswith(".") for check in CHECKS)


@pytest.mark.parametrize(
    ("check", "part", "reason"),
    [
        ("nvml.library", "nvml", "library_not_found"),
        ("proc.host-pid", "procfs", "no_host_pid"),
        ("kubelet.socket", "podresources", "permission"),
        ("part.workloads", "workloads", "attribution_error"),
        ("claims.rights", "resource-claims", "unreachable"),
    ],
)
def test_a_part_that_is_down_fails_its_check_with_its_reason_and_advice(check: str, part: str, reason: str) -> None:
    finding = found(check, with_down(part, reason, "as told"))
    assert finding.status is Status.FAIL
    assert finding.detail == f"{reason}: as told"
    assert finding.advice == next_step(Fault(reason=reason), part)


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_part_that_is_down_goes_untold(part: str, reason: str) -> None:
    findings = examine(with_down(part, reason), HERE)
    assert any(finding.status in (Status.WARN, Status.FAIL) and finding.advice for finding in findings)


def test_what_passes_by_itself_is_a_warning() -> None:
    assert found("nvml.library", with_down("nvml", "released")).status is Status.WARN


def test_without_a_driver_the_cards_are_not_judged() -> None:
    snapshot = replace(with_down("nvml", "driver_not_loaded"), cards=())
    judged = {finding.id: finding.status for finding in examine(snapshot, HERE)}
    assert judged["nvml.gpus"] is Status.SKIP
    assert {status for check, status in judged.items() if check.startswith(("gpu.", "mig."))} == {Status.SKIP}


def test_a_driver_that_lists_no_gpu_fails() -> None:
    finding = found("nvml.gpus", cards=())
    assert (finding.status, finding.detail) == (Status.FAIL, "no GPU was found")
    assert "NVIDIA_VISIBLE_DEVICES" in finding.advice


def test_a_card_that_is_lost_is_named_with_its_cure() -> None:
    lost = replace(WHOLE, fault=Fault(reason="lost", call="nvmlDeviceGetPowerUsage"))
    finding = found("nvml.gpus", cards=(lost, SPLIT))
    assert finding.detail == "GPU 0 cannot be read: lost in nvmlDeviceGetPowerUsage. It is held by ml/llama-0."
    assert "Xid 79" in finding.advice


@pytest.mark.parametrize(
    ("check", "readings", "status", "detail"),
    [
        (
            "gpu.recovery",
            {"recovery_action": 2},
            "FAIL",
            "GPU 0 needs recovery: the driver asks to reboot the node.",
        ),
        (
            "gpu.recovery",
            {"recovery_action": 99},
            "FAIL",
            "GPU 0 needs recovery: the driver asks to take action 99.",
        ),
        ("gpu.recovery", {"recovery_action": float("nan")}, "SKIP", "the driver does not report it"),
        (
            "gpu.memory",
            {"row_remap_failed": 1},
            "FAIL",
            "GPU 0 has a bad row of memory that could not be remapped.",
        ),
        (
            "gpu.memory",
            {"row_remap_pending": 1},
            "WARN",
            "GPU 0 has bad memory that will be replaced at the next reset.",
        ),
        ("gpu.xid", {"xid_last_code": 79}, "WARN", "GPU 0 raised XID 79 (GPU has fallen off the bus)."),
        ("gpu.link", {"pcie_link_width": 8}, "WARN", "GPU 0: x8 of x16"),
        ("nvml.profiling", {"sm_active_ratio": float("nan")}, "WARN", "GPU 0: no profiling values"),
    ],
)
def test_a_sick_card_is_named(check: str, readings: dict[str, float], status: str, detail: str) -> None:
    finding = found(check, cards=(with_readings(WHOLE, **readings), SPLIT))
    assert (finding.status, finding.detail) == (status, detail)
    assert bool(finding.advice) == (status != "SKIP")


def test_a_narrow_link_is_named_although_another_card_has_the_same_number() -> None:
    """Cards that come from several pages have such numbers."""
    other = replace(WHOLE, gpu=replace(WHOLE.gpu, uuid="GPU-9"))
    assert found("gpu.link", cards=(with_readings(WHOLE, pcie_link_width=8), other)).detail == "GPU 0: x8 of x16"


def test_mig_mode_without_instances_or_without_their_profiling_is_a_warning() -> None:
    assert found("mig.instances", cards=(replace(SPLIT, instances=()),)).status is Status.WARN
    mute = replace(SPLIT, instances=(replace(SPLIT.instances[0], readings=()),))
    assert found("mig.profiling", cards=(WHOLE, mute)).detail == "GPU 1: instances without profiling values"


def test_hidden_processes_fail_only_where_one_is_on_a_gpu() -> None:
    hidden = Holder(pid=7, kind="unknown", reason="hidden")
    assert found("proc.hidepid", cards=held_by(hidden)).status is Status.FAIL
    assert found("proc.hidepid", machine=replace(HERE, hides_processes=True)).status is Status.WARN


def test_a_cgroup_that_nobody_knows_is_shown() -> None:
    strange = Holder(pid=7, kind="unknown", reason="unrecognised", cgroup="0::/odd/place")
    finding = found("proc.owners", cards=held_by(HOLDER, strange))
    assert (finding.status, finding.detail) == (Status.WARN, "PID 7: unrecognised (0::/odd/place)")


@pytest.mark.parametrize("machine", [HERE, ELSEWHERE])
def test_a_node_of_kubernetes_without_the_kubelets_folder_fails(machine: Machine) -> None:
    finding = found("kubelet.socket", without("podresources"), machine)
    assert finding.status is Status.FAIL
    assert "/var/lib/kubelet/pod-resources" in finding.advice


def test_a_machine_without_kubernetes_has_nothing_to_answer_for() -> None:
    bare = replace(
        SOUND,
        parts=tuple(part for part in SOUND.parts if part.name in ("nvml", "procfs")),
        cards=held_by(Holder(pid=42, kind="host")),
    )
    judged = {finding.id: finding.status for finding in examine(bare, replace(HERE, in_pod=False))}
    about = [status for check, status in judged.items() if check.startswith(("kubelet.", "api.", "pods."))]
    assert set(about) == {Status.SKIP}


@pytest.mark.parametrize(("part", "check"), [("pods-api", "kubelet.pods-api"), ("apiserver", "api.access")])
def test_a_source_of_pods_that_is_down_costs_little_while_the_other_works(part: str, check: str) -> None:
    assert found(check, with_down(part, "forbidden")).status is Status.WARN
    other = {"pods-api": "apiserver", "apiserver": "pods-api"}[part]
    alone = with_down(part, "forbidden")
    alone = replace(alone, parts=tuple(status for status in alone.parts if status.name != other))
    assert found(check, alone).status is Status.FAIL


def test_log_folders_tell_names_but_no_annotations() -> None:
    snapshot = without("pods-api", "apiserver")
    assert found("pods.source", snapshot).detail == "by log-dirs"
    assert found("pods.annotations", snapshot).status is Status.WARN


def test_pods_that_nobody_lists_point_at_the_nodes_name() -> None:
    stranger = Holder(pid=8, kind="pod", owner=Owner(pod_uid="99999999-aaaa-4000-8000-000000000009"))
    claim = Claim(gpu=CARD, container=ContainerRef("ml", "other-0", "server"))
    given_it = Tenant(container=claim.container, claims=(claim,))
    for cards in (held_by(stranger), (replace(WHOLE, tenants=(given_it,)), SPLIT)):
        finding = found("pods.names", cards=cards)
        assert (finding.status, finding.detail) == (Status.WARN, "1 pod on a GPU not in the list of pods")
        assert "NODE_NAME" in finding.advice


def test_a_refused_claim_names_the_right_that_is_missing() -> None:
    finding = found("claims.rights", with_down("resource-claims", "forbidden"))
    assert finding.status is Status.FAIL
    assert "resourceclaims" in finding.advice


def test_a_sharing_system_without_claims_says_what_it_needs() -> None:
    finding = found("sharing.hami", sharing=(SharingStatus(system="hami", missing="the pods' annotations"),))
    assert finding.status is Status.WARN
    assert "needs the pods' annotations" in finding.advice


@pytest.mark.parametrize("wrong", [{"busy_us": 6}, {"energy_mj": 70}, {"memory_bytes": 1}])
def test_books_that_do_not_balance_fail(wrong: dict[str, int]) -> None:
    assert WHOLE.balance
    card = replace(WHOLE, balance=replace(WHOLE.balance, **wrong))
    finding = found("books.balance", cards=(SPLIT, card))
    assert (finding.status, finding.detail) == (
        Status.FAIL,
        "GPU 0 has books that do not add up to the card.",
    )


def test_former_tenants_are_part_of_the_books() -> None:
    former = Tenant(container=LLAMA, booking=Booking(busy_us=3, energy_mj=4))
    assert WHOLE.balance
    more = replace(WHOLE.balance, busy_us=8, energy_mj=75)
    assert found("books.balance", cards=(replace(WHOLE, ended=(former,), balance=more),)).status is Status.PASS


def test_memory_that_cannot_be_known_unbalances_nothing() -> None:
    tenant = replace(TENANT, booking=replace(TENANT.booking, memory_bytes=None))
    rest = replace(REST, memory_bytes=None)
    assert WHOLE.balance
    balance = replace(WHOLE.balance, memory_bytes=None)
    card = replace(WHOLE, tenants=(tenant,), rest=(rest,), balance=balance)
    assert found("books.balance", cards=(card,)).status is Status.PASS


def test_much_that_is_nobodys_is_told_with_its_reasons() -> None:
    zombie = Process(pid=1, kinds=("compute",), holder=Holder(pid=1, kind="unknown", reason="zombie"))
    rest = Rest(reason="unknown", memory_bytes=10 * GIB, processes=(zombie,))
    finding = found("books.unattributed", cards=(replace(WHOLE, rest=(rest,)),))
    assert finding.status is Status.WARN
    assert finding.detail == "no known owner: 50% of the memory; processes: 1 zombie"


def test_memory_counts_only_on_cards_whose_processes_can_be_listed() -> None:
    rest = Rest(reason="unknown", memory_bytes=20 * GIB)
    page = replace(WHOLE, rest=(rest,), ability=replace(WHOLE.ability, sees_processes=False))
    assert found("books.unattributed", cards=(page, WHOLE)).status is Status.PASS


@pytest.mark.parametrize(
    ("machine", "status"),
    [
        (replace(HERE, clock_synchronised=False), "WARN"),
        (replace(HERE, clock_synchronised=None), "SKIP"),
        (ELSEWHERE, "PASS"),
        (replace(ELSEWHERE, now=NOW - 60), "WARN"),
        (replace(ELSEWHERE, now=NOW + 3600), "WARN"),
    ],
)
def test_the_clock_is_judged_by_the_kernel_here_and_by_ours_elsewhere(machine: Machine, status: str) -> None:
    assert found("node.clock", machine=machine).status == status


@pytest.mark.parametrize("check", ["dialect.dcgm-fields", "dialect.shared-pods"])
def test_from_elsewhere_nothing_is_said_about_options_that_an_agent_does_not_tell(check: str) -> None:
    finding = found(check, machine=ELSEWHERE)
    assert finding.status is Status.SKIP
    assert finding.detail.startswith("an agent does not tell its options")


NAMES = st.text(max_size=300)


@given(NAMES, NAMES, NAMES)
def test_names_from_pods_never_steer_the_terminal(pod: str, resource: str, reason: str) -> None:
    snapshot = replace(
        SOUND,
        unclaimed=(Allocation(namespace="n", pod=pod, container="c", resource=resource, device_id=resource),),
        sharing=(SharingStatus(system=pod, missing=reason),),
        cards=(
            replace(
                held_by(Holder(pid=1, kind="unknown", reason=reason, cgroup=pod))[0],
                gpu=replace(WHOLE.gpu, uuid=pod, model=pod, compute_capability=reason),
            ),
        ),
    )
    for finding in examine(snapshot, HERE):
        assert not re.search("[\x00-\x1f\x7f-\x9f\ud800-\udfff]", finding.id + finding.detail + finding.advice)


def test_an_empty_snapshot_is_judged_without_a_crash() -> None:
    empty = Snapshot(node="", taken_at=0.0, interval_seconds=1.0, version="")
    assert examine(empty, Machine(now=0.0))


def test_a_process_that_ended_is_not_counted() -> None:
    tenant = replace(TENANT, processes=(PROCESS, Process(pid=43)))
    card = replace(WHOLE, tenants=(tenant,))
    assert found("nvml.processes", cards=(card,)).detail == "1 process on 1 GPU"


def test_a_process_on_two_cards_has_one_owner() -> None:
    strange = Holder(pid=7, kind="unknown", reason="unrecognised")
    cards = (held_by(strange)[0], held_by(strange)[0])
    assert found("proc.owners", cards=cards).detail == "PID 7: unrecognised"


@pytest.mark.parametrize(
    ("missing", "status"), [(None, "SKIP"), ((), "PASS"), (("DCGM_FI_DEV_VGPU_LICENSE_STATUS",), "WARN")]
)
def test_counters_that_cannot_be_had_are_named(missing: tuple[str, ...] | None, status: str) -> None:
    (finding,) = (
        finding
        for finding in examine(SOUND, replace(HERE, missing_fields=missing))
        if finding.id == "dialect.dcgm-fields"
    )
    assert finding.status == status
    assert all(field in finding.detail for field in missing or ())


def test_a_page_of_metrics_is_not_asked_for_what_only_the_driver_knows() -> None:
    page = replace(without("nvml"), cards=PAGE)
    judged = {finding.id: finding.status for finding in examine(page, HERE)}
    assert {judged[f"nvml.{check}"] for check in ("library", "processes", "profiling")} == {Status.SKIP}


def test_pages_of_all_nodes_are_judged_by_what_pages_can_tell() -> None:
    parts = (PartStatus(name="dcgm", up=True), PartStatus(name="apiserver", up=True))
    judged = {finding.id: finding.status for finding in examine(replace(SOUND, parts=parts, cards=PAGE), HERE)}
    assert judged["kubelet.socket"] is Status.SKIP
    assert judged["mig.profiling"] is Status.SKIP
    assert Status.FAIL not in judged.values()


def test_a_page_that_cannot_be_had_is_the_cause_and_not_the_driver() -> None:
    broken = PartStatus(name="dcgm", up=False, fault=Fault(reason="page_unreachable"))
    snapshot = replace(SOUND, parts=(broken,), cards=())
    judged = {finding.id: finding.status for finding in examine(snapshot, HERE)}
    assert (judged["nvml.gpus"], judged["part.dcgm"]) == (Status.SKIP, Status.FAIL)
    assert judged["kubelet.socket"] is Status.SKIP
