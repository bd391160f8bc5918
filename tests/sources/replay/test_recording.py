"""Recordings: read whole, read after a crash, and refused if they are none."""

import tracemalloc
from pathlib import Path

import pytest

from podgpu.errors import UserError
from podgpu.sources.replay.recording import MAGIC, Player, Recording, frame

FRAMES = [frame(at, f"moment {at:g}".encode()) for at in (100.0, 105.0, 115.0)]


def recorded(folder: Path, *parts: bytes) -> Recording:
    path = folder / "recording"
    path.write_bytes(b"".join((MAGIC, *parts)))
    return Recording(path)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    found = recorded(tmp_path, *FRAMES)
    assert found.times == [100.0, 105.0, 115.0]
    assert found.document(2) == b"moment 115"


@pytest.mark.parametrize("cut", range(1, len(FRAMES[2]) + 1))
def test_a_crash_in_the_midst_of_a_frame_costs_that_frame_alone(tmp_path: Path, cut: int) -> None:
    assert recorded(tmp_path, FRAMES[0], FRAMES[1], FRAMES[2][:-cut]).times == [100.0, 105.0]


@pytest.mark.parametrize("data", [b"", b"podgpu", MAGIC, MAGIC + FRAMES[0][:10], b"\x1f\x8b" * 100])
def test_what_is_no_recording_is_refused_in_one_line(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "other").write_bytes(data)
    with pytest.raises(UserError, match="is not a recording, or an empty one; make one with `podgpu record`"):
        Recording(tmp_path / "other")


def test_a_damaged_frame_is_named(tmp_path: Path) -> None:
    found = recorded(tmp_path, FRAMES[0], FRAMES[1][:-1] + b"\xff", FRAMES[2])
    assert found.document(0) == b"moment 100"
    with pytest.raises(UserError, match="is damaged after 1 moments"):
        found.document(1)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_moments_come_when_they_came_then(tmp_path: Path, clock: Clock) -> None:
    player = Player(recorded(tmp_path, *FRAMES), clock=clock)
    assert (player.number, player.seconds_to_next) == (0, 5.0)
    clock.now += 5
    assert (player.number, player.seconds_to_next) == (1, 10.0)
    clock.now += 100
    assert player.is_over and player.seconds_to_next == float("inf")


def test_a_pause_and_another_speed_go_on_from_where_it_is(tmp_path: Path, clock: Clock) -> None:
    player = Player(recorded(tmp_path, *FRAMES), speed=2.0, clock=clock)
    clock.now += 1
    player.pause()
    clock.now += 60
    assert (player.number, player.seconds_to_next) == (0, float("inf"))
    player.pause()
    assert player.seconds_to_next == 1.5
    player.go_faster(1)
    assert player.speed == 5.0 and player.seconds_to_next == pytest.approx(0.6)
    player.go_faster(-100)
    assert player.speed == 0.1


def test_a_step_pauses_and_stays_within_the_recording(tmp_path: Path, clock: Clock) -> None:
    player = Player(recorded(tmp_path, *FRAMES), clock=clock)
    player.step(1)
    assert (player.number, player.is_paused) == (1, True)
    clock.now += 60
    player.step(-1)
    assert player.number == 0
    player.step(-1)
    assert player.number == 0
    player.step(100)
    assert player.number == len(FRAMES) - 1


def test_a_loop_begins_again(tmp_path: Path, clock: Clock) -> None:
    player = Player(recorded(tmp_path, *FRAMES), is_loop=True, clock=clock)
    clock.now += 25 + 6
    assert (player.number, player.is_over) == (1, False)


def test_a_bomb_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    found = recorded(tmp_path, FRAMES[0], frame(101.0, b" " * (1 << 28)))
    assert found.document(0) == b"moment 100"
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match="is damaged after 1 moments"):
            found.document(1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 27, "256 MiB would take twice as much"
