import pytest

from podgpu.model import Fault
from podgpu.views.advice import next_step

OF_PARTS = [
    *("no_socket", "unavailable", "deadline", "rate_limited", "too_large", "garbage", "permission"),
    *("unreachable", "unauthorized", "forbidden", "throttled", "gone", "stalled", "tls"),
    *("no_host_pid", "hidden"),
]


@pytest.mark.parametrize("reason", OF_PARTS)
def test_every_reason_has_a_next_step_of_its_own(reason: str) -> None:
    assert next_step(Fault(reason=reason)) != next_step(Fault(reason="never heard of"))


def test_a_list_that_is_gone_is_no_card_that_is_gone() -> None:
    gone = Fault(reason="gone")
    assert "card" in next_step(gone)
    assert "card" not in next_step(gone, "apiserver")
