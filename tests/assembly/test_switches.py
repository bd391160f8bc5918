"""What `--switches` makes of the driver's log of context switches."""

import pytest

from podgpu.assembly.agent import open_attribution
from podgpu.config import Config


@pytest.mark.parametrize(
    ("value", "expected"),
    [("off", None), ("check", (False, True)), ("auto", (False, False)), ("on", (True, False))],
)
async def test_when_the_log_is_read(value: str, expected: tuple[bool, bool] | None) -> None:
    attribution = open_attribution(Config(switches=value, kube_api="off"))
    switch_logs = attribution._switch_logs
    assert (switch_logs and (switch_logs._always, switch_logs._checks_only)) == expected
    assert bool(attribution.watched) == (expected is not None)
    await attribution.close()
