"""Two MPS clients and a tenant beside them: whose are their slices?"""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from tests.gpu.mps import A, B, mps
from tests.gpu.switching.harm import tenant
from tests.gpu.switching.listening import Check, Listening
from tests.gpu.work import at_work

SECONDS = 6.0


def checked_mps() -> Iterator[Check]:
    """The clients are busy and bursty; the other works all the time, and does not know of MPS."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        other = stack.enter_context(tenant(folder, "beside"))
        stack.enter_context(mps())
        loads, _ = stack.enter_context(at_work(A, B))
        named = {_server(): "server", other.pid: "beside"}
        named |= {load.process.pid: f"client {load.tenant.name}" for load in loads}
        heard = Listening(SECONDS).heard()
    shares = {named.get(pid, str(pid)): f"{part / heard.covered_ns:.3f}" for pid, part in heard.by_pid().items()}
    yield "who is in the log", str(shares), heard.by_pid().keys() <= named.keys()


def _server() -> int:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        if b"nvidia-cuda-mps-server" in command:
            return int(process.name)
    raise RuntimeError("there is no MPS server")
