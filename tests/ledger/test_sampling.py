"""Whether samples and log agree, by example and by the binomial distribution itself."""

from math import comb, exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.ledger.cycle import Comparison, Party
from podgpu.ledger.residency import Evidence, SampleCounts, compared, tallies
from podgpu.model import BusyWindow, Slice, Span

MS = 1_000_000
PARTIES = {1: "one", 2: "two"}
SHARES = st.floats(0.01, 0.97)


def windows(*busy: int) -> tuple[BusyWindow, ...]:
    """Each of 200 ms, with so many milliseconds of work."""
    return tuple(BusyWindow(200 * MS * number, 200 * MS * (number + 1), part * MS) for number, part in enumerate(busy))


def shares(evidence: Evidence, elapsed_us: int = 400_000, **named: int) -> dict[str, tuple[float, float]]:
    named_us: dict[Party, int] = {str(party): time for party, time in named.items()}
    found = compared(evidence, PARTIES, named_us, elapsed_us)
    return {
        str(party): (
            round(comparison.resident / comparison.samples, 3),
            round(comparison.named / comparison.samples, 3),
        )
        for party, comparison in found.items()
    }


def test_time_on_the_card_counts_as_much_as_the_card_was_busy() -> None:
    slices = (Slice(1, 0, 200 * MS), Slice(2, 200 * MS, 400 * MS))
    even = Evidence(windows=windows(100, 100), slices=slices)
    assert shares(even, one=200, two=200) == {"one": (0.5, 0.5), "two": (0.5, 0.5)}
    # The second one stays on the card after its work is done, which samples see as well.
    uneven = Evidence(windows=windows(180, 20), slices=slices)
    assert shares(uneven, one=180, two=20) == {"one": (0.9, 0.9), "two": (0.1, 0.1)}
    assert compared(uneven, PARTIES, {"one": 1}, 400_000)["one"].samples == pytest.approx(200**2 / (180**2 + 20**2))


def test_samples_from_outside_the_logs_time_never_make_an_evader() -> None:
    evidence = Evidence(windows=windows(200), slices=(Slice(1, 0, 200 * MS),))
    assert shares(evidence, one=200, two=200) == {"one": (1.0, 1.0), "two": (0.0, 1.0)}


def test_where_the_log_is_blind_or_has_no_windows_nothing_is_compared() -> None:
    slices = (Slice(1, 0, 5000 * MS),)
    whole = (BusyWindow(0, 5000 * MS, 5000 * MS),)
    for evidence in (
        Evidence(windows=windows(200), slices=slices, blind=(Span(0, 1),)),
        Evidence(windows=windows(200)),
        Evidence(windows=whole, slices=slices),
        Evidence(slices=slices),
    ):
        assert not shares(evidence, one=200)


def test_a_sample_that_names_nobody_proves_nothing() -> None:
    assert not shares(Evidence(windows=windows(200), slices=(Slice(1, 0, 200 * MS),)), one=0)


@given(samples=st.integers(1, 300), share=SHARES, part=st.floats(0, 1))
def test_chance_is_never_less_likely_than_is_claimed(samples: int, share: float, part: float) -> None:
    named = int(part * share * samples)
    tally = SampleCounts(samples=samples, resident=share * samples, named=named)
    truth = sum(comb(samples, k) * share**k * (1 - share) ** (samples - k) for k in range(named + 1))
    assert truth <= exp(-tally.evidence) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("share", "named", "samples", "proof"),
    [
        (0.518, 0.0, 15, False),
        (0.518, 0.0, 20, True),
        (0.375, 0.0, 30, True),
        (0.092, 0.0, 143, False),
        (0.092, 0.0, 145, True),
        (0.518, 0.574, 202, False),  # rests at times of its own
        (0.518, 0.45, 200, False),
        (0.03, 0.0, 1500, False),  # not worth an accusation
        (1.0, 0.987, 1500, False),  # what samples are off by
    ],
)
def test_what_was_seen_on_a_real_card(share: float, named: float, samples: int, proof: bool) -> None:
    tally = SampleCounts(samples=samples, resident=share * samples, named=named * samples)
    assert tally.is_proof is proof


def test_whoever_was_not_there_for_a_while_was_not_named_either() -> None:
    early: dict[Party, Comparison] = {"one": Comparison(10, 4, 3)}
    late: dict[Party, Comparison] = {"two": Comparison(5, 2, 2)}
    found = tallies([early, late])
    assert found["one"] == SampleCounts(samples=15, resident=4, named=3)
    assert found["two"] == SampleCounts(samples=15, resident=2, named=2)
