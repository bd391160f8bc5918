"""The recorded looks of a real card, with what its tenants really did."""

from pathlib import Path

import pytest

from tests.samples.paced import paced_recordings, paced_verdicts
from tests.samples.replay import judge, kernel_seconds, recording, true_shares, verdicts

FOLDER = Path(__file__).parent / "recorded"
RECORDED = recording(FOLDER / "h200.json.gz")
EVERY = RECORDED | recording(FOLDER / "h200-fresh.json.gz")
SECONDS = kernel_seconds(EVERY.values())


@pytest.mark.parametrize("cycle", [1.0, 5.0])
@pytest.mark.parametrize("name", EVERY)
def test_what_tenants_without_a_rhythm_did_is_likely(name: str, cycle: float) -> None:
    for verdict in verdicts(name, EVERY[name], cycle, SECONDS):
        assert verdict.is_inside, verdict
        assert verdict.is_possible, verdict


PACED = dict(paced_recordings())


@pytest.mark.parametrize("cycle", [1.0, 5.0])
@pytest.mark.parametrize("file", PACED)
def test_no_bound_excludes_what_tenants_with_a_frame_rate_did(file: str, cycle: float) -> None:
    found = list(paced_verdicts(file, PACED[file], cycle))
    assert found
    for verdict in found:
        assert verdict.is_possible, verdict


def test_a_frame_rate_makes_a_likely_range_wrong_which_is_why_it_is_no_bound() -> None:
    """A small model at 25 frames a second had 5.9 % of the card, and samples give it seven times as much."""
    file = "h200-paced-10-25.json.gz"
    _, _, camera = list(paced_verdicts(file, PACED[file], 5.0))[:3]
    assert camera.true == pytest.approx(0.059)
    assert camera.booked > 0.4
    assert not camera.is_inside


def test_the_likely_range_is_narrow_on_the_card_that_is_always_busy() -> None:
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
