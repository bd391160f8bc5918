"""Whether it is understood who was given a GPU."""

from msgspec.structs import replace

from podgpu.doctor.verdict import Status
from podgpu.model import ContainerRef, Excused, SharingStatus
from tests.doctor.sound_node import WHOLE, found


def test_what_is_in_doubt_about_claims_is_a_warning() -> None:
    doubts = ("which card is meant is not known for 1 container. A process settles it",)
    finding = found("sharing.gpushare", sharing=(SharingStatus(system="gpushare", claims=2, doubts=doubts),))
    assert (finding.status, finding.detail) == (Status.WARN, f"2 claims; {doubts[0]}")
    assert "docs/sharing.md" in finding.advice


def test_whoever_has_a_card_for_others_is_listed_with_the_proof() -> None:
    assert found("claims.excused").detail == "nobody is excused"
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
