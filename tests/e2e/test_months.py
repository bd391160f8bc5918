"""A few random months, billed in real stores. `make months` plays many more."""

import time
from pathlib import Path

import pytest

from tests.e2e import prometheus, victoria
from tests.e2e.months.check import STORES, Findings, check
from tests.e2e.months.maker import Maker
from tests.e2e.months.month import DAY

pytestmark = pytest.mark.skipif(
    prometheus.PROGRAM is None or victoria.PROGRAM is None,
    reason="prometheus or victoria-metrics is not installed",
)
# Among them: agents off, a GPU moved, the store away at the end, a GPU lost, a node without an agent; an agent that is
# installed late, and whose only GPU is lost later.
SEEDS = (1, 8, 10, 11, 14, 30, 34, 67)


@pytest.mark.parametrize("store", STORES)
def test_every_bill_is_what_really_happened(store: str, tmp_path: Path) -> None:
    now = time.time() // DAY * DAY
    findings = Findings()
    check(store, [Maker(seed, now).made() for seed in SEEDS], tmp_path, findings)
    assert not findings.failures
    assert 0 < findings.incomplete < findings.months == len(SEEDS)
