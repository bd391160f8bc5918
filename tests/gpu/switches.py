"""Checks the driver's log of context switches on a machine with a real GPU, and prints one table in under 8 minutes.

Needs root, cgroup v2, PyTorch for the tenants and podgpu's dependencies on PYTHONPATH. Changes no setting of the card.
A part that fails does not stop the others. From the environment: PARTS (such as `open,sets`), SECONDS of each set,
KILLS.

    open    the log opens, and how long that takes
    sets    fresh tenants: residency, lost records, bands beside those of looks and the truth by kernels done
    cost    what a tenant alone and two in contention lose while the log is read, in one run; the reader's own CPU
    rights  as root without capabilities: root's tenants are exact, another user's hidden
    kills   start, kill -9 and restart while tenants run: none fails, no descriptor stays
    agent   a minute of a whole agent with --switches=auto: method, band, sums, release
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import mean
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])

from podgpu.sources.child import sees_node  # noqa: E402 - the path is set above
from podgpu.sources.switches.child import Reader  # noqa: E402
from tests.gpu.listening import MINOR, Check, Heard, Listening  # noqa: E402
from tests.gpu.resident import checked_agent  # noqa: E402
from tests.gpu.slowdown import checked_cost  # noqa: E402

SECONDS = float(os.environ.get("SECONDS", "16"))
KILLS = int(os.environ.get("KILLS", "1000"))
KILL_SECONDS = 110.0  # at most
OTHER_USER = 1234


def checked_open() -> Iterator[Check]:
    heard = Listening(2).heard()
    yield "PID namespace is the node's", str(sees_node()), None
    yield "the log opens", f"in {heard.open_ms:.0f} ms", True
    yield "CPU of a reader of a quiet log", f"{heard.cpu_ms:.1f} ms/s", heard.cpu_ms <= 5


SETS: dict[str, list[tuple[str, float, float, float]]] = {
    "busy+bursty": [("tensor", 0.5, 0.0, 0.0), ("tensor", 0.03, 0.07, 0.5)],
    "long+short": [("tensor", 0.15, 0.35, 0.5), ("tensor", 0.01, 0.04, 0.5)],
    "busy+mem+infer": [("tensor", 0.5, 0.0, 0.0), ("mem", 0.02, 0.05, 0.5), ("infer", 0.01, 0.03, 0.5)],
    "four": [
        ("tensor", 0.5, 0.0, 0.0),
        ("tensor", 0.05, 0.1, 0.5),
        ("mem", 0.02, 0.05, 0.5),
        ("infer", 0.01, 0.03, 0.5),
    ],
}


def checked_sets() -> Iterator[Check]:
    for name, kinds in SETS.items():
        try:
            yield from checked_set(name, kinds)
        except Exception as error:
            traceback.print_exc()
            yield f"set {name}", repr(error)[:200], False


def checked_set(name: str, kinds: list[tuple[str, float, float, float]]) -> Iterator[Check]:
    from tests.gpu.looks import Looks
    from tests.gpu.tenants import truth
    from tests.gpu.work import Tenant, at_work

    tenants = [Tenant(f"{kind[0]}-{number}", *kind) for number, kind in enumerate(kinds)]
    with at_work(*tenants) as (loads, _):
        with Looks() as looks:
            heard = Listening(SECONDS).heard()
            windows = samples(looks.answers[0][0])
        time.sleep(1)  # for the last bursts to be over
        recorded = truth(loads, looks.answers[0][0], looks.answers[-1][0])
        recorded |= {"pids": [load.process.pid for load in loads], "process": looks.answers}
    lost = heard.counts["lost_records"] + heard.counts["overflow"]
    yield (
        f"{name}: records lost",
        f"{lost} of {2 * heard.switches}, odd {dict(heard.counts)}",
        not lost and not heard.lost,
    )
    told = heard.resident_ns + heard.switching_ns
    off = told / heard.covered_ns - 1
    yield f"{name}: residency and switching", f"{100 + 100 * off:.2f} % of the time", abs(off) < 0.01
    share = 100 * heard.switching_ns / heard.covered_ns
    rate = heard.records_per_second
    yield f"{name}: switching", f"{share:.1f} % of the card, {rate:.0f} records/s", None
    yield f"{name}: CPU of the reader", f"{heard.cpu_ms:.1f} ms/s", heard.cpu_ms <= 5 * max(1, rate / 2000)
    yield from banded(name, recorded, heard)
    same, all_of_them = agreeing(recorded, windows)
    yield f"{name}: windows in one call", f"{same} of {all_of_them} looks are in them", same == all_of_them


def banded(name: str, recorded: dict[str, Any], heard: Heard) -> Iterator[Check]:
    from tests.looks.replay import verdicts
    from tests.looks.switches import by_looks, findings

    found = findings(recorded, heard.slices, by_looks(recorded))
    by_look = list(verdicts(name, recorded, 1.0))
    busy = mean(look[2] for _, answer in recorded["process"] for look in answer) / 100
    for number, (one, look) in enumerate(zip(found, by_look, strict=True)):
        band = f"{100 * one.least:.1f}-{100 * one.most:.1f}"
        own = f"true {100 * one.true:.1f}, booked {100 * one.booked:.1f}, band {band}"
        least, booked, most = (100 * part / busy for part in (look.least, look.booked, look.most))
        figures = f"{own}; by looks {booked:.1f}, {least:.1f}-{most:.1f}"
        is_inside = one.least <= one.booked <= one.most
        yield f"{name}: tenant {number} {recorded['tenants'][number][0]}", figures, is_inside
    total = sum(one.booked for one in found)
    yield f"{name}: sum of the bookings", f"{100 * total:.4f} %", abs(total - 1) < 1e-4


def samples(since: float) -> dict[int, int]:
    """Every window of the driver in one call, as the sampler reads them."""
    import pynvml

    card = pynvml.nvmlDeviceGetHandleByIndex(0)
    _, found = pynvml.nvmlDeviceGetSamples(card, pynvml.NVML_GPU_UTILIZATION_SAMPLES, int(since * 1e6))
    return {one.timeStamp: one.sampleValue.uiVal for one in found}


def agreeing(recorded: dict[str, Any], windows: dict[int, int]) -> tuple[int, int]:
    oldest = min(windows, default=0)
    looks = {look[1]: look[2] for _, answer in recorded["process"] for look in answer if look[1] >= oldest}
    stamps = sorted(windows)
    near = [min(stamps, key=lambda stamp, at=at: abs(stamp - at)) for at in looks] if stamps else []  # type: ignore[misc]
    same = sum(windows[stamp] == busy for stamp, busy in zip(near, looks.values(), strict=False))
    return same, len(looks)


@contextmanager
def tenant(folder: Path, name: str, *, user: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A busy tenant outside any pod, as any user."""
    log = folder / f"{name}.log"
    log.touch()
    log.chmod(0o666)
    work = [sys.executable, str(ROOT / "tests/gpu/bursts.py"), str(log), "tensor", "0.1", "0.0", "0.0", "1"]
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
        name: {
            named.get(pid, str(pid)): f"{part / heard.covered_ns:.3f}" for pid, part in heard.by_pid().items()
        }
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
        count += (
            sum(target.startswith("/dev/nvidia") for target in targets)
            if int(process.name) not in pids
            else 0
        )
    return count


def started_and_killed(chance: random.Random) -> bool:
    """Return whether the reader came as far as reading."""
    inlet, outlet = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            reader = Reader(MINOR)
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
    from tests.gpu.work import Tenant, at_work

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


def kernel_complaints() -> str:
    done = subprocess.run(["dmesg"], capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if "NVRM" in line or "Xid" in line or "BUG:" in line]
    return " | ".join(lines[-3:]) or ("none" if not done.returncode else "cannot be read")


PARTS: dict[str, Callable[[], Iterator[Check]]] = {
    "open": checked_open,
    "sets": checked_sets,
    "cost": checked_cost,
    "rights": checked_rights,
    "kills": checked_kills,
    "agent": checked_agent,
}


def main() -> int:
    failed, began = 0, time.monotonic()
    for part in os.environ.get("PARTS", ",".join(PARTS)).split(","):
        try:
            for name, figure, passed in PARTS[part]():
                mark = "    " if passed is None else "ok  " if passed else "FAIL"
                failed += passed is False
                print(f"{mark} {part:<7} {name}: {figure}", flush=True)
        except Exception as error:
            traceback.print_exc()
            failed += 1
            print(f"FAIL {part:<7} {error!r}", flush=True)
    print(f"kernel: {kernel_complaints()}")
    print(f"{failed} failed, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
