import json
import logging
import os
import time
from collections.abc import Callable, Iterator

import pytest

from podgpu import log
from podgpu.log import LINE_BYTES, LineHandler, LogEvent, RepeatFilter, as_json, event_of, line, logfmt
from tests.patience import PATIENCE

HOSTILE = [
    "a\nb",
    'a"b',
    "a\\b",
    "\r\n",
    "\u2028\u2029\x85",
    "\x00\x1b[31m",
    "\ud800",
    "a=b c",
    "",
    "é" * 9000,
]

Lines = Callable[[], list[str]]


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    yield reader, writer
    for descriptor in (reader, writer):
        try:
            os.close(descriptor)
        except OSError:
            continue


@pytest.fixture
def lines(pipe: tuple[int, int]) -> Iterator[Lines]:
    """Whole lines written since the last call, with logging configured to write them."""
    root = logging.getLogger()
    before = root.level
    log.configure("info", "logfmt", pipe[1])

    def read() -> list[str]:
        try:
            return os.read(pipe[0], 1 << 20).decode().splitlines()
        except BlockingIOError:
            return []

    yield read
    for handler in [each for each in root.handlers if isinstance(each, LineHandler)]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(before)


def happened(message: str, logger: str = "part", **fields: float | str) -> LogEvent:
    return LogEvent(0.0, "warn", logger, message, tuple(fields.items()))


def test_a_line_has_time_level_message_and_fields(lines: Lines) -> None:
    log.warning("the GPU is lost", gpu=3, seconds=0.25, ok=False, call=None, name="H200")
    (found,) = lines()
    stamp, _, rest = found.partition(" ")
    assert stamp.startswith("time=20")
    assert stamp.endswith("Z")
    assert rest == 'level=warn msg="the GPU is lost" gpu=3 seconds=0.25 ok=false call=null name=H200'


def test_debug_is_written_only_when_asked_for(lines: Lines, pipe: tuple[int, int]) -> None:
    log.debug("quiet")
    assert lines() == []
    log.configure("debug", "logfmt", pipe[1])
    log.debug("loud")
    assert "level=debug msg=loud" in lines()[0]


@pytest.mark.parametrize("form", [logfmt, as_json])
@pytest.mark.parametrize("value", HOSTILE)
def test_an_event_is_one_line_that_one_write_can_take(form: Callable[[LogEvent], str], value: str) -> None:
    found = line(LogEvent(0.0, "info", "x", value, (("a", value), ("b", value), ("c", value))), form)
    assert found.endswith(b"\n")
    assert len(found.decode().splitlines()) == 1
    assert len(found) <= LINE_BYTES


def test_a_line_with_far_too_many_fields_keeps_its_message() -> None:
    crowd = tuple((f"field{number}", "x" * 100) for number in range(1000))
    found = line(LogEvent(0.0, "info", "x", "the message", crowd), as_json)
    assert json.loads(found)["msg"] == "the message"
    assert len(found) <= LINE_BYTES


@pytest.mark.parametrize("value", [each for each in HOSTILE if len(each) < 100])
def test_json_gives_the_values_back(value: str) -> None:
    found = json.loads(line(LogEvent(0.0, "info", "x", value, (("a", value), ("n", 3))), as_json))
    assert (found["msg"], found["a"], found["n"]) == (value, value, 3)


def test_json_stays_json_when_a_number_is_not() -> None:
    found = as_json(LogEvent(0.0, "info", "x", "m", (("a", float("nan")), ("b", float("inf")))))
    assert "NaN" not in found
    assert json.loads(found)["b"] == "inf"


def test_a_field_cannot_pass_for_the_level(lines: Lines) -> None:
    logging.getLogger("x").info("m", extra={"fields": {"level": "error", "a b\n": 1}})
    assert lines()[0].endswith("level=info msg=m level_=error a_b_=1")


class Unshowable:
    def __str__(self) -> str:
        raise RuntimeError


def test_a_value_that_cannot_be_shown_costs_only_itself(lines: Lines) -> None:
    log.error("odd values", a=Unshowable(), b=10**5000)
    assert lines()[0].endswith("a=<Unshowable> b=<int>")


def test_a_message_that_does_not_fit_its_values_is_written_as_it_is() -> None:
    assert event_of(logging.LogRecord("x", logging.INFO, "", 0, "%d apples", ("three",), None)).message == "%d apples"


def test_an_exception_is_shown_in_the_same_line(lines: Lines) -> None:
    try:
        json.loads("{\n")
    except ValueError as error:
        logging.getLogger("aiohttp.server").exception("failed")
        log.error("refused", error=error)
    first, second = lines()
    assert 'msg=failed error="JSONDecodeError: ' in first
    assert "< test_log.py:" in first
    assert "JSONDecodeError" in second


def test_repeats_are_counted_and_written_before_the_news(lines: Lines) -> None:
    for number in range(5):
        log.warning("no answer", gpu=1, seconds=number / 7)
    log.info("answers again", gpu=1)
    first, count, news = lines()
    assert "repeated" not in first
    assert count.endswith("repeated=4")
    assert "answers again" in news


def test_the_rest_is_counted_when_logging_ends(lines: Lines, pipe: tuple[int, int]) -> None:
    log.warning("no answer")
    log.warning("no answer")
    log.configure("info", "logfmt", pipe[1])
    assert [text.endswith("repeated=1") for text in lines()] == [False, True]


def test_a_count_is_written_when_its_window_ends(pipe: tuple[int, int]) -> None:
    """Nothing else has to happen for that."""
    handler = LineHandler(pipe[1], logfmt, RepeatFilter(seconds=0.5))
    for _ in range(3):
        handler.handle(logging.LogRecord("x", logging.INFO, "", 0, "m", None, None))
    found = b""
    deadline = time.monotonic() + PATIENCE
    while b"repeated=2" not in found and time.monotonic() < deadline:
        time.sleep(0.01)
        try:
            found += os.read(pipe[0], 4096)
        except BlockingIOError:
            continue
    handler.close()
    assert found.count(b"\n") == 2


def test_different_fields_are_different_events_but_measurements_are_not() -> None:
    repeats = RepeatFilter()
    assert len(repeats.take(happened("m", gpu=1, seconds=1.0), 0)) == 1
    assert len(repeats.take(happened("m", gpu=2, seconds=1.0), 1)) == 1
    assert repeats.take(happened("m", gpu=1, seconds=2.0), 2) == []


def test_a_kind_is_written_again_after_its_window() -> None:
    repeats = RepeatFilter(seconds=60)
    first = repeats.take(happened("m"), 0)
    again = repeats.take(happened("m"), 59)
    later = repeats.take(happened("m"), 60)
    assert (len(first), again) == (1, [])
    assert [dict(each.fields) for each in later] == [{"repeated": 1}, {}]


def test_two_alternating_events_stay_folded() -> None:
    repeats = RepeatFilter()
    written = [each for second in range(40) for each in repeats.take(happened(f"m{second % 2}"), second)]
    assert [each.message for each in written] == ["m0", "m1"]


def test_an_event_of_one_part_does_not_write_the_counts_of_others() -> None:
    repeats = RepeatFilter()
    repeats.take(happened("m", logger="a"), 0)
    repeats.take(happened("m", logger="a"), 1)
    assert [each.message for each in repeats.take(happened("news", logger="b"), 2)] == ["news"]
    assert [each.message for each in repeats.take(happened("news", logger="a"), 2)] == ["m", "news"]


def test_memory_is_bounded_and_no_count_is_lost() -> None:
    repeats = RepeatFilter(most=10)
    written = []
    for number in range(100):
        written += repeats.take(happened(f"m{number}", logger=str(number)), number / 100)
        written += repeats.take(happened(f"m{number}", logger=str(number)), number / 100)
    assert len(repeats._repeats) == 10
    written += repeats.expired(float("inf"))
    assert sum(dict(each.fields).get("repeated") == 1 for each in written) == 100


def test_a_full_pipe_costs_lines_that_are_counted_and_no_time(pipe: tuple[int, int]) -> None:
    handler = LineHandler(pipe[1], logfmt)
    for number in range(2000):
        handler.handle(logging.LogRecord("x", logging.INFO, "", 0, f"{number} " + "x" * 500, None, None))
    written = os.read(pipe[0], 1 << 20).count(b"\n")
    handler.handle(logging.LogRecord("x", logging.INFO, "", 0, "the reader is back", None, None))
    handler.close()
    assert os.read(pipe[0], 1 << 20).decode().endswith(f"dropped={2000 - written}\n")


def test_a_broken_pipe_is_ignored(pipe: tuple[int, int]) -> None:
    handler = LineHandler(pipe[1], logfmt)
    os.close(pipe[0])
    handler.handle(logging.LogRecord("x", logging.INFO, "", 0, "m", None, None))
    handler.close()


def test_levels_between_ours_are_rounded_up() -> None:
    levels = [event_of(logging.LogRecord("x", level, "", 0, "m", None, None)).level for level in (5, 20, 25, 50)]
    assert levels == ["debug", "info", "warn", "error"]
