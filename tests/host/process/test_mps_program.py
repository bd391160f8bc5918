"""Which program root runs: real processes, started as `su` and `sudo` start them."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from podgpu.host.procfs import Procfs
from tests.host.process.start import NOBODY, built, started

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or shutil.which("gcc") is None, reason="needs root and a compiler")
CONTROL, SERVER = "nvidia-cuda-mps-control", "nvidia-cuda-mps-server"


@pytest.fixture(scope="module")
def programs() -> Iterator[Path]:
    """Programs of root's, in a folder that everybody may enter."""
    with tempfile.TemporaryDirectory() as folder:
        yield built(Path(folder))


@contextmanager
def server(programs: Path, program: str, user: int, *how: str) -> Iterator[int]:
    """A process of nobody's with the name of an MPS server, started by that program, which that user runs."""
    with started(programs, program, user, *how, SERVER) as pid:
        yield pid


CASES = [
    (CONTROL, 0, (), "root"),
    ("nvidia-cuda-mps-su", NOBODY, (), None),
    ("nvidia-cuda-mps-su", NOBODY, ("wholly",), None),
    (f"linked/{CONTROL}", NOBODY, ("wholly",), None),
    (f"writable/{CONTROL}", 0, (), None),
    ("nvidia-cuda-mps-tool", 0, (), None),
]


@pytest.mark.parametrize(("program", "user", "how", "found"), CASES)
def test_root_runs_mps_for_others_if_it_runs_its_program(
    programs: Path, program: str, user: int, how: tuple[str, ...], found: str | None
) -> None:
    with server(programs, program, user, *how) as pid:
        procfs = Procfs(Path("/proc"))
        holder = procfs.holders([pid])[pid]
        assert (holder.kind, holder.command, holder.user) == ("host", "nvidia-cuda-mps", NOBODY)
        assert procfs.mps([holder]) == {pid: found}


READER = """from pathlib import Path
from podgpu.host.procfs import Procfs
procfs = Procfs(Path('/proc'))
print(procfs.mps(procfs.holders([{pid}]).values())[{pid}])
"""


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
@pytest.mark.parametrize(("program", "user", "found"), [(CONTROL, 0, "root"), ("nvidia-cuda-mps-su", NOBODY, None)])
def test_without_the_right_to_see_the_program_su_is_known_by_its_user(
    programs: Path, program: str, user: int, found: str | None
) -> None:
    """As with the unit for systemd, which gives root no capabilities."""
    with server(programs, program, user) as pid:
        bare = [
            "setpriv",
            "--bounding-set=-all",
            "--inh-caps=-all",
            sys.executable,
            "-c",
            READER.format(pid=pid),
        ]
        said = subprocess.run(bare, capture_output=True, text=True, timeout=60, check=True).stdout
    assert said.strip() == str(found)


def test_a_process_of_roots_own_is_its_daemon_only_by_its_program(programs: Path) -> None:
    for program, found in ((SERVER, "root"), ("nvidia-cuda-mps-tool", None)):
        with subprocess.Popen([programs / program], stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout and process.stdout.readline()
                procfs = Procfs(Path("/proc"))
                assert procfs.mps(procfs.holders([process.pid]).values()) == {process.pid: found}
            finally:
                process.kill()
