"""Every fault of the catalogue is played, in every phase or with a reason why not."""

from collections import Counter

from tests.faults.catalogue import COUNTS, FEW, KINDS
from tests.faults.play import Phase
from tests.faults.plays import PLAYS


def test_every_fault_is_played() -> None:
    wanted = {f"{kind}{number}" for kind, most in COUNTS.items() for number in range(1, most + 1)}
    assert {play.fault_id for play in PLAYS} == wanted


def test_no_two_plays_have_one_name() -> None:
    names = Counter(play.id for play in PLAYS)
    assert [name for name, times in names.items() if times > 1] == []


def test_a_phase_is_left_out_for_a_reason_and_never_all_of_them() -> None:
    assert [play.id for play in PLAYS if not play.phases] == []
    assert [play.id for play in PLAYS for reason in play.left_out.values() if not reason] == []


def test_some_of_each_kind_and_of_each_phase_are_played_every_time() -> None:
    phases = {play.id: play.phases for play in PLAYS}
    assert all(set(few) <= set(phases[name]) for name, few in FEW.items())
    assert {name[0] for name in FEW} == set(KINDS) == set(COUNTS)
    assert {phase for few in FEW.values() for phase in few} == set(Phase)
