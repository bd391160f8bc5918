import pytest

from podgpu.insight.advice import next_step
from podgpu.kube import api
from podgpu.model import Fault

KUBELET = (
    *(
        "no_socket",
        "permission",
        "unavailable",
        "deadline",
        "rate_limited",
        "too_large",
        "too_many",
        "garbage",
    ),
    *("not_synced", "unimplemented"),
)
OF_PARTS = [
    *(("podresources", reason) for reason in KUBELET),
    *(("pods-api", reason) for reason in KUBELET),
    *(("apiserver", reason) for reason in api.REASONS),
    *(("log-dirs", reason) for reason in ("missing", "forbidden", "unreadable")),
    *((part, "too_many_containers") for part in ("pods-api", "apiserver")),
    ("procfs", "no_host_pid"),
]


@pytest.mark.parametrize(("part", "reason"), OF_PARTS)
def test_every_reason_of_a_part_has_a_next_step_of_its_own(part: str, reason: str) -> None:
    assert next_step(Fault(reason=reason), part) != next_step(Fault(reason="never heard of"), part)


def test_a_list_that_is_gone_is_no_card_that_is_gone() -> None:
    gone = Fault(reason="gone")
    assert "card" in next_step(gone)
    assert "card" not in next_step(gone, "apiserver")


@pytest.mark.parametrize("reason", api.REASONS)
def test_who_cannot_reach_the_api_server_is_not_sent_to_it(reason: str) -> None:
    assert "from the API server" not in next_step(Fault(reason=reason), "apiserver")
    assert "kubelet" not in next_step(Fault(reason=reason), "apiserver")
