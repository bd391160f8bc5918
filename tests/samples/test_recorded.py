"""The recorded looks of a real card, with what its tenants really did."""

from pathlib import Path

import pytest

from tests.samples.replay import judge, kernel_seconds, recording, true_shares, verdicts

FOLDER = Path(__file__).parent / "recorded"
RECORDED = recording(FOLDER / "h200.json.gz")
EVERY = RECORDED | recording(FOLDER / "h200-fresh.json.gz")
SECONDS = kernel_seconds(EVERY.values())


@pytest.mark.parametrize("cycle", [1.0, 5.0])
@pytest.mark.parametrize("name", EVERY)
def test_what_tenants_did_is_inside_the_band(name: str, cycle: float) -> None:
    for verdict in verdicts(name, EVERY[name], cycle, SECONDS):
        assert verdict.is_inside, verdict


def test_the_band_is_narrow_on_the_card_that_is_always_busy() -> None:
    busy, bursty = verdicts("A+B", RECORDED["A+B"], 5.0)
    assert busy.most - busy.least < 0.23
    assert bursty.most < busy.least


def test_tenants_with_different_kernels_are_judged_by_kernel_time() -> None:
    """A kernel of copies takes 2.7 times as long as a product, alone."""
    marked = {name for name, recorded in EVERY.items() if judge(recorded) == "kernel time"}
    assert marked == {"infer", "three", "2 tensor,mem", "3 tensor,mem,infer"}
    assert {kind: round(1e6 * seconds) for kind, seconds in SECONDS.items()} == {
        "tensor": 191,
        "mem": 518,
        "fp32": 369,
        "infer": 683,
    }


def test_who_waits_for_the_card_has_no_time_of_it() -> None:
    """Two bursts of the same length at the same time, of kernels of 1 and of 3 ms in turns: a quarter, not half."""
    turns = {
        "tenants": [["short"], ["long"]],
        "logs": [
            {"steps": 110, "bursts": [[0.0, 0.01, 10], [1.0, 1.4, 100]]},
            {"steps": 110, "bursts": [[0.1, 0.13, 10], [1.0, 1.4, 100]]},
        ],
    }
    assert true_shares(turns) == pytest.approx([0.25, 0.75])
