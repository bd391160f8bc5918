import os
import time
from pathlib import Path

from podgpu.host.proc_stat import processor_time_us
from tests.agent.stage import write_proc


def test_it_is_what_the_kernel_counts() -> None:
    before = time.process_time()
    while time.process_time() < before + 0.05:
        pass
    before = time.process_time()
    found = processor_time_us(Path("/proc"), os.getpid())
    after = time.process_time()
    assert found
    # It has two parts, each in whole hundredths of a second.
    assert before - 0.03 < found / 1e6 < after + 0.01


def test_a_process_may_call_itself_what_it_likes(tmp_path: Path) -> None:
    write_proc(tmp_path, 7, "", command="a) S 1 (b")
    assert processor_time_us(tmp_path, 7) == 0


def test_whoever_is_gone_or_makes_no_sense_has_none(tmp_path: Path) -> None:
    assert processor_time_us(tmp_path, 7) is None
    (tmp_path / "8").mkdir()
    (tmp_path / "8" / "stat").write_text("8 (python3) S 1")
    assert processor_time_us(tmp_path, 8) is None
