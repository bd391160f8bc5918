"""The recorded looks of a real card, with what its tenants really did."""

from pathlib import Path

import pytest

from tests.samples.replay import recording, verdicts

FOLDER = Path(__file__).parent / "recorded"
RECORDED = recording(FOLDER / "h200.json.gz")
EVERY = RECORDED | recording(FOLDER / "h200-fresh.json.gz")


@pytest.mark.parametrize("cycle", [1.0, 5.0])
@pytest.mark.parametrize("name", EVERY)
def test_what_tenants_did_is_inside_the_band(name: str, cycle: float) -> None:
    for verdict in verdicts(name, EVERY[name], cycle):
        assert verdict.is_inside, verdict


def test_the_band_is_narrow_on_the_card_that_is_always_busy() -> None:
    busy, bursty = verdicts("A+B", RECORDED["A+B"], 5.0)
    assert busy.most - busy.least < 0.23
    assert bursty.most < busy.least
