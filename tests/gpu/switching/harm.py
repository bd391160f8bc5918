"""Who sees what without privileges, and whether a reader that is killed harms anybody."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from podgpu.sources.switches.child import CardLogReader
from tests.gpu.switching.listening import MINOR, Check, Listening
from tests.gpu.work import WORK, Tenant, at_work

KILLS = int(os.environ.get("KILLS", "1000"))
KILL_SECONDS = 110.0  # at most
OTHER_USER = 1234


@contextmanager
def tenant(folder: Path, name: str, *, user: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A busy tenant outside any pod, as any user."""
    log = folder / f"{name}.log"
    log.touch()
    log.chmod(0o666)
    work = [sys.executable, str(WORK), str(log), "tensor", "0.1", "0.0", "0.0", "1"]
    process = subprocess.Popen(
        work, user=user, env={**os.environ, "HOME": str(folder)}, stderr=subprocess.PIPE, cwd=str(folder)
    )
    try:
        deadline = time.monotonic() + 60
        while not log.read_text() and time.monotonic() < deadline:
            if process.poll() is not None:
                assert process.stderr
                raise RuntimeError(f"tenant {name} ended: {process.stderr.read().decode()[-300:]}")
            time.sleep(0.1)
        yield process
    finally:
        process.kill()
        process.wait()


def checked_rights() -> Iterator[Check]:
    with tempfile.TemporaryDirectory() as path, ExitStack() as stack:
        folder = Path(path)
        folder.chmod(0o777)
        root = stack.enter_context(tenant(folder, "root"))
        other = stack.enter_context(tenant(folder, "other", user=OTHER_USER))
        able, unable = Listening(4).heard(), Listening(4, capable=False).heard()
    seen, named = able.by_pid(), {root.pid: "root", other.pid: "other user", 0: "hidden"}
    shares = {
        name: {named.get(pid, str(pid)): f"{part / heard.covered_ns:.3f}" for pid, part in heard.by_pid().items()}
        for name, heard in (("with", able), ("without", unable))
    }
    yield "with CAP_SYS_ADMIN", str(shares["with"]), {root.pid, other.pid} <= set(seen)
    hidden = unable.by_pid()
    is_right = root.pid in hidden and other.pid not in hidden and hidden[0] > 0
    yield "root without capabilities", f"{shares['without']}, odd {dict(unable.counts)}", is_right
    same = abs(hidden[root.pid] / unable.covered_ns - seen[root.pid] / able.covered_ns)
    yield "root's tenant is the same in both", f"{100 * same:.2f} points apart", same < 0.02


def nvidia_descriptors(pids: set[int]) -> int:
    """Those of any process but these."""
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            targets = [str(fd.readlink()) for fd in (process / "fd").iterdir()]
        except OSError:  # it has ended
            continue
        count += sum(target.startswith("/dev/nvidia") for target in targets) if int(process.name) not in pids else 0
    return count


def started_and_killed(chance: random.Random) -> bool:
    """Return whether the reader came as far as reading."""
    inlet, outlet = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            reader = CardLogReader(MINOR)
            os.write(outlet, b"o")
            while True:
                reader.answer()
                time.sleep(0.01)
        except BaseException as error:
            os.write(2, f"reader: {error!r}\n".encode())
            os._exit(1)
    os.close(outlet)
    time.sleep(chance.uniform(0, 0.06))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    came = os.read(inlet, 1) == b"o"
    os.close(inlet)
    return came


def checked_kills() -> Iterator[Check]:
    chance = random.Random(17)
    tenants = [Tenant(f"kills-{number}", "tensor", 0.05, 0.0, 0.0) for number in range(2)]
    with at_work(*tenants) as (loads, _):
        pids = {load.process.pid for load in loads}
        before, began = nvidia_descriptors(pids), time.monotonic()
        done = reading = 0
        while done < KILLS and time.monotonic() - began < KILL_SECONDS:
            reading += started_and_killed(chance)
            done += 1
        took = time.monotonic() - began
        after, alive = nvidia_descriptors(pids), all(load.process.poll() is None for load in loads)
        bursts = [len(load.bursts()) for load in loads]
        heard = Listening(3).heard()
        worked = all(len(load.bursts()) > count for load, count in zip(loads, bursts, strict=True))
    yield (
        "killed and restarted",
        f"{done} times in {took:.0f} s, {reading} while reading",
        done >= min(KILLS, 300),
    )
    yield "tenants live and work", f"{alive} {worked}", alive and worked
    yield "descriptors of the driver before and after", f"{before} {after}", after <= before
    is_sound = heard.switches > 0 and not heard.counts["lost_records"]
    yield "a reader after all that", f"{heard.switches} switches, odd {dict(heard.counts)}", is_sound
