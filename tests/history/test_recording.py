"""A recording is a history of its own: every frame is a moment of it."""

from msgspec.structs import replace

from podgpu.errors import UserError
from podgpu.history.recording import MOST_READ, RecordingHistory
from podgpu.model import Snapshot
from tests.serve.rig import make_snapshot
from tests.tree import judged

START = 1_700_000_000.0
FIRST = judged(make_snapshot())


def recorded(number: int) -> Snapshot:
    if number == 3:
        raise UserError("this frame has no such node")
    return replace(FIRST, taken_at=START + 10 * number)


def history(frames: int) -> RecordingHistory:
    return RecordingHistory([START + 10 * number for number in range(frames)], recorded)


async def test_a_moment_is_the_frame_of_its_time() -> None:
    past = history(9).at(START + 57)
    assert past is not None
    assert (past.whole(), past.taken_at) == (recorded(5), history(9).found(START + 57))
    assert history(9).at(START - 1) is None and history(9).found(START - 1) is None


async def test_the_timeline_is_as_long_as_the_recording() -> None:
    kept = history(90)
    assert (kept.span, kept.step, kept.shown_seconds) == ((START, START + 890), 10.0, 890.0)
    timeline = await kept.timeline(START, START + 890, 10.0)
    seen = [step["at"] for step in timeline["steps"] if "gpus" in step]
    assert len(timeline["steps"]) == 90
    assert len(seen) == 89 and START + 30 not in seen


async def test_of_a_long_recording_some_frames_are_read() -> None:
    timeline = await history(10 * MOST_READ).timeline(START, START + 10, 10.0)
    assert len([step for step in timeline["steps"] if "gpus" in step]) == 1


async def test_a_gpu_that_is_not_in_it_has_no_numbers() -> None:
    assert await history(9).gpu_hour("GPU-9") is None
