"""Whether it is understood who was given a GPU."""

from msgspec.structs import replace

from podgpu.doctor.check import Status
from podgpu.model import Allocation, ContainerRef, Excused, Process, SharingStatus, Tenant
from tests.doctor.sound_node import LLAMA, PROCESS, WHOLE, found


def test_what_is_in_doubt_about_claims_is_a_warning() -> None:
    doubts = ("which card is meant is not known for 1 container. A process settles it",)
    finding = found("sharing.gpushare", sharing=(SharingStatus(system="gpushare", claims=2, doubts=doubts),))
    assert (finding.status, finding.detail) == (Status.WARN, f"2 claims; {doubts[0]}")
    assert "docs/sharing.md" in finding.advice


def test_whoever_has_a_card_for_others_is_listed_with_the_proof() -> None:
    assert found("claims.excused").detail == "no pod is excused"
    daemon = ContainerRef("gpu-operator", "mps-daemon", "c", "u")
    card = replace(
        WHOLE,
        excused=(
            Excused(role="reservation", proof="its namespace is x", container=ContainerRef("x", "p", "c")),
            Excused(role="mps-server", proof="it was \x1b[2J given nothing", container=daemon, pid=7),
            Excused(role="mps-server", proof="root's daemon", pid=8),
        ),
    )
    finding = found("claims.excused", cards=(card,))
    assert (finding.status, finding.detail.split("; ")) == (
        Status.PASS,
        [
            "reservation x/p/c on GPU 0: its namespace is x",
            "mps-server PID 7 in gpu-operator/mps-daemon/c on GPU 0: it was �[2J given nothing",
            "mps-server PID 8 on GPU 0: root's daemon",
        ],
    )


def test_who_uses_a_gpu_without_a_claim_is_named() -> None:
    intruder = Tenant(container=LLAMA, processes=(PROCESS,))
    outsider = Tenant(container=ContainerRef("", "", "docker/web"), processes=(PROCESS,))
    former = Tenant(container=LLAMA, processes=(Process(pid=43),))
    finding = found("claims.missing", cards=(replace(WHOLE, tenants=(intruder, outsider, former)),))
    assert finding.detail == "Container server of ml/llama-0 uses GPU 0, which is not allocated to the pod."
    assert finding.status is Status.WARN


def test_a_card_of_two_pods_is_not_called_an_unknown_id() -> None:
    listed = Allocation(
        namespace="n", pod="p", container="c", resource="nvidia.com/gpu", device_id="GPU-1", disputed=True
    )
    finding = found("sharing.unknown-ids", unclaimed=(listed,))
    assert finding.detail == "n/p: the kubelet lists the device GPU-1 of nvidia.com/gpu for another pod too."


def test_an_unknown_id_is_shown_with_its_pod_and_resource() -> None:
    unknown = tuple(
        Allocation(namespace="ml", pod=f"p-{n}", container="c", resource="example.com/gpu", device_id=f"X{n}")
        for n in range(5)
    )
    finding = found("sharing.unknown-ids", unclaimed=unknown)
    assert finding.status is Status.WARN
    assert finding.detail == ("ml/p-0: no sharing system knows the device X0 of example.com/gpu. And 4 more like it.")
