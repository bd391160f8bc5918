"""Whether it is understood who was given a GPU."""

from podgpu.doctor.verdict import Status
from podgpu.model import SharingStatus
from tests.doctor.sound_node import found


def test_what_is_in_doubt_about_claims_is_a_warning() -> None:
    doubts = ("which card is meant is not known for 1 container. A process settles it",)
    finding = found("sharing.gpushare", sharing=(SharingStatus(system="gpushare", claims=2, doubts=doubts),))
    assert (finding.status, finding.detail) == (Status.WARN, f"2 claims; {doubts[0]}")
    assert "docs/sharing.md" in finding.advice
