"""Records become slices, by example. Times are in nanoseconds; a delay of 0 keeps the examples short."""

import random

import pytest

from podgpu.model import ENDED_PID, HIDDEN_PID, Slice, Span, SwitchLog
from podgpu.sources.switches.slices import LARGEST_STEP_NS, CardClock, SliceBuilder
from tests.fakeswitches.node import END, START, record


def played(*events: tuple[int, int, int], first: int = 100, dropped: int = 0) -> SliceBuilder:
    builder = SliceBuilder(began_ns=0)
    records = [record(event, pid, stamp, sequence=first + place) for place, (event, pid, stamp) in enumerate(events)]
    builder.feed(b"".join(records), dropped)
    return builder


def cut(builder: SliceBuilder, now: int, *, ahead: int = 0) -> SwitchLog:
    log = builder.cut(CardClock(now, ahead), 0)
    assert log
    return log


TWO = ((START, 7, 1000), (END, 7, 2000), (START, 8, 2084), (END, 8, 3000), (START, 7, 3084))


def test_whoever_is_on_the_card_has_a_slice_up_to_the_end() -> None:
    log = cut(played(*TWO), 5000)
    assert log.slices == (Slice(7, 1000, 2000), Slice(8, 2084, 3000), Slice(7, 3084, 5000))
    assert (log.begin_ns, log.end_ns, log.switches, log.switching_ns) == (1000, 5000, 3, 168)


def test_a_quiet_log_says_that_nothing_has_changed() -> None:
    builder = played(*TWO)
    cut(builder, 5000)
    assert cut(builder, 9000).slices == (Slice(7, 5000, 9000),)


def test_a_slice_goes_on_in_the_next_log_and_nothing_is_told_twice() -> None:
    builder = played(*TWO)
    first, second = cut(builder, 2500), cut(builder, 4000)
    assert first.slices == (Slice(7, 1000, 2000), Slice(8, 2084, 2500))
    assert second.slices == (Slice(8, 2500, 3000), Slice(7, 3084, 4000))


def test_without_a_record_nobody_knows_who_is_there() -> None:
    assert SliceBuilder(began_ns=0).cut(CardClock(5000, 0), 0) is None


def test_who_leaves_first_was_there_from_the_beginning() -> None:
    log = cut(played((END, 7, 2000), (START, 8, 2084)), 3000)
    assert log.slices == (Slice(7, 0, 2000), Slice(8, 2084, 3000))


def test_a_long_pause_after_a_process_has_left_is_no_switching() -> None:
    log = cut(played((START, 7, 1000), (END, 7, 2000), (START, 8, 5_000_000)), 6_000_000)
    assert log.switching_ns == 0


def test_switches_after_the_end_of_a_log_count_for_the_next() -> None:
    builder = played(*TWO)
    first, second = cut(builder, 2040), cut(builder, 3042)
    assert (first.switches, first.switching_ns) == (1, 40)
    assert (second.switches, second.switching_ns) == (1, 44 + 42)


def test_a_switch_that_is_heard_of_when_its_log_is_over_is_cut_off() -> None:
    builder = played(*TWO[:2])
    cut(builder, 2040)
    builder.feed(record(START, 8, 2084, sequence=102), 0)
    assert cut(builder, 3000).switching_ns == 44


@pytest.mark.parametrize("seed", range(20))
def test_time_on_the_card_and_between_contexts_is_never_more_than_there_was(seed: int) -> None:
    chance = random.Random(seed)
    builder, at, done, sequence = SliceBuilder(began_ns=0), 1000, 0, 0
    for _ in range(40):
        records = []
        for _ in range(chance.randrange(6)):
            pid = chance.choice((7, 8, HIDDEN_PID))
            for event in (START, END) if chance.random() < 0.9 else (START,):
                at += chance.choice((0, 1, 84, 2000, 3_000_000))
                blur = chance.randrange(300) if pid == HIDDEN_PID else 0
                sequence += 1
                records.append(record(event, pid, at - blur, sequence=sequence))
        builder.feed(b"".join(records), 0)
        log = builder.cut(CardClock(at + chance.randrange(200), 0), chance.randrange(3000))
        if log:
            done += 1
            told = sum(part.end_ns - part.begin_ns for part in log.slices) + log.switching_ns
            assert log.switching_ns >= 0
            assert told <= log.end_ns - log.begin_ns
    assert done > 10


def test_times_are_the_nodes() -> None:
    log = cut(played(*TWO), 5000, ahead=400)
    assert log.slices[0] == Slice(7, 600, 1600)
    assert (log.begin_ns, log.end_ns) == (600, 4600)


def test_a_gap_in_the_sequence_is_lost_time() -> None:
    builder = SliceBuilder(began_ns=0)
    builder.feed(record(START, 7, 1000, sequence=65535), 0)
    builder.feed(record(START, 8, 4000, sequence=2), 0)  # 0 and 1 are missing
    log = cut(builder, 5000)
    assert builder.counts["lost_records"] == 2
    assert log.lost == (Span(1000, 4000),)
    assert log.slices == (Slice(8, 4000, 5000),)


def test_lost_time_that_goes_on_in_the_next_log_is_told_once() -> None:
    builder = played(*TWO[:4])
    builder.feed(record(START, 7, 6000, sequence=200), 0)
    first, second = cut(builder, 4000), cut(builder, 7000)
    assert first.lost == (Span(3000, 4000),)
    assert second.lost == (Span(4000, 6000),)


def test_the_sequence_goes_on_after_65535() -> None:
    builder = played(*TWO, first=65533)
    assert not builder.counts["lost_records"]


def test_dropped_records_are_lost_time() -> None:
    builder = played(*TWO, dropped=3)
    log = cut(builder, 5000)
    assert log.lost == (Span(3084, 5000),)
    assert log.slices == (Slice(7, 1000, 2000), Slice(8, 2084, 3000))
    builder.feed(record(START, 8, 6000, sequence=300), 0)
    later = cut(builder, 7000)
    assert later.lost == (Span(5000, 6000),)
    assert later.slices == (Slice(8, 6000, 7000),)
    assert builder.counts["overflow"] == 3


def test_a_process_that_ended_on_the_way_keeps_its_slice() -> None:
    records = [
        record(START, 7, 1000, sequence=1, context=5),
        record(END, -1, 2000, sequence=2, context=5),
        record(START, -1, 2100, sequence=3, context=6),
    ]
    builder = SliceBuilder(began_ns=0)
    builder.feed(b"".join(records), 0)
    log = cut(builder, 3000)
    assert log.slices == (Slice(7, 1000, 2000), Slice(ENDED_PID, 2100, 3000))
    assert builder.counts["ended_record"] == 2


def test_a_hidden_process_is_hidden_and_its_blurred_times_do_not_reach_into_others() -> None:
    events = ((START, 7, 1000), (END, 7, 2000), (START, 0, 1900), (END, 0, 3500), (START, 7, 3000))
    builder = played(*events)
    log = cut(builder, 4000)
    assert log.slices == (Slice(7, 1000, 2000), Slice(HIDDEN_PID, 2000, 3000), Slice(7, 3000, 4000))
    assert builder.counts["hidden_record"] == 2


def test_a_record_without_a_time_is_lost_time() -> None:
    builder = played((START, 7, 1000), (END, 7, 2000), (START, 0, 0), (END, 0, 0), (START, 7, 3000))
    assert cut(builder, 4000).lost
    assert builder.counts["bad_stamp"] == 2


def test_the_cards_clock_that_goes_back_is_lost_time() -> None:
    builder = played((START, 7, 1000), (END, 7, 2000), (START, 8, 1500), (END, 8, 1600), (START, 7, 1700))
    cut(builder, 1800)
    assert builder.counts["bad_stamp"] == 1


def test_a_clock_that_was_set_makes_the_whole_log_doubtful() -> None:
    builder = played(*TWO)
    cut(builder, 2500)
    log = cut(builder, 5000, ahead=LARGEST_STEP_NS + 1)
    assert builder.counts["clock_step"] == 1
    assert log.lost[0].end_ns - log.lost[0].begin_ns == 2500


def test_an_answer_that_took_long_changes_no_clock() -> None:
    builder = played(*TWO)
    cut(builder, 2500)
    log = builder.cut(CardClock(5000, LARGEST_STEP_NS, doubt_ns=LARGEST_STEP_NS), 0)
    assert log
    assert not log.lost
    assert log.end_ns == 5000


def test_a_first_answer_that_took_long_makes_no_step_of_the_next_one() -> None:
    builder = played(*TWO)
    first = builder.cut(CardClock(2500, -2 * LARGEST_STEP_NS, doubt_ns=2 * LARGEST_STEP_NS), 0)
    log = cut(builder, 5000)
    assert first
    assert builder.counts == {}
    assert (log.lost, log.end_ns) == ((), 5000)


def test_records_of_instances_are_left_out() -> None:
    builder = SliceBuilder(began_ns=0)
    records = [
        record(START, 7, 1000, sequence=1),
        record(START, 9, 1200, sequence=900, gi=1, ci=0),
        record(END, 9, 1300, sequence=901, gi=1, ci=0),
        record(END, 7, 2000, sequence=2),
    ]
    builder.feed(b"".join(records), 0)
    assert cut(builder, 3000).slices == (Slice(7, 1000, 2000),)
    assert builder.counts == {"mig_record": 2}


def test_older_records_have_no_instance() -> None:
    builder = SliceBuilder(began_ns=0)
    builder.feed(record(START, 7, 1000, sequence=1, kind=134, gi=0, ci=0), 0)
    assert cut(builder, 2000).slices == (Slice(7, 1000, 2000),)


def test_a_record_that_comes_too_late_changes_nothing_that_was_told() -> None:
    builder = played(*TWO)
    cut(builder, 5000)
    builder.feed(record(END, 7, 4000, sequence=105) + record(START, 8, 4084, sequence=106), 0)
    log = cut(builder, 6000)
    assert builder.counts == {"late_record": 2}
    assert log.slices == (Slice(8, 5000, 6000),)


def test_what_is_no_switch_is_left_out() -> None:
    builder = SliceBuilder(began_ns=0)
    builder.feed(record(START, 7, 1000, sequence=1) + record(START, 7, 1000, sequence=1, kind=99), 0)
    assert builder.counts == {"other_record": 1}


def test_a_start_without_an_end_is_lost_time() -> None:
    builder = played((START, 7, 1000), (START, 8, 2000))
    assert cut(builder, 3000).lost == (Span(1000, 2000),)
    assert builder.counts["unpaired"] == 1
