"""The list of faults is whole."""

from collections import Counter

from tests.faults.catalogue import COUNTS, FEW
from tests.faults.plays import PLAYS


def test_no_two_plays_have_one_name() -> None:
    names = Counter(play.id for play in PLAYS)
    assert [name for name, times in names.items() if times > 1] == []


def test_every_fault_is_played() -> None:
    wanted = {f"{kind}{number}" for kind, most in COUNTS.items() for number in range(1, most + 1)}
    assert {play.fault_id for play in PLAYS} == wanted


def test_a_few_of_every_kind_are_played_each_time() -> None:
    phases = {play.id: play.phases for play in PLAYS}
    assert {name[0] for name in FEW} == set(COUNTS)
    assert all(set(few) <= set(phases[name]) for name, few in FEW.items())
