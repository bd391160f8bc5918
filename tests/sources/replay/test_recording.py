"""Recordings: read whole, read after a crash, and refused if they are none."""

import tracemalloc
from pathlib import Path

import pytest

from podgpu.errors import UserError
from podgpu.model.frames import MAGIC, frame
from podgpu.sources.replay.recording import Recording

FRAMES = [frame(at, (f"moment {at:g}".encode(),)) for at in (100.0, 105.0, 115.0)]


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
    with pytest.raises(UserError, match=r"moment 2 of .*/recording is damaged; record again"):
        found.document(1)


def test_a_bomb_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    found = recorded(tmp_path, FRAMES[0], frame(101.0, (b" " * (1 << 28),)))
    assert found.document(0) == b"moment 100"
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=r"moment 2 of .*/recording is damaged; record again"):
            found.document(1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 27, "256 MiB would take twice as much"


def test_a_file_that_is_gone_is_refused_in_one_line(tmp_path: Path) -> None:
    found = recorded(tmp_path, *FRAMES)
    (tmp_path / "recording").unlink()
    with pytest.raises(UserError, match=r"cannot read .*/recording: No such file or directory; give another"):
        found.document(0)
