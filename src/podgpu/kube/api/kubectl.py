"""The API server by the user's own kubectl: a child, `kubectl proxy`, that listens on a socket in a private folder.

So everything works that works for kubectl: plugins that log in, proxies, contexts, merged kubeconfigs. Any program of
this user could connect to the socket; the folder keeps others out.
"""

import asyncio
import ctypes
import shutil
import signal
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from podgpu.errors import UserError
from podgpu.kube.api import CONNECTIONS, ApiFault, ApiServer
from podgpu.net.client import HttpClient
from podgpu.supervise import Supervisor, end

START_SECONDS = 15.0
LOOK_SECONDS = 0.02
STOP_SECONDS = 2.0
LINES_KEPT, LONGEST_LINE = 5, 1000
_PR_SET_PDEATHSIG = 1
_TRY = "try `kubectl get nodes`"


class KubectlApi(ApiServer):
    """Starts the child with the first request, and again with the next one after it has ended."""

    def __init__(
        self,
        program: str,
        *,
        kubeconfig: Path | None = None,
        context: str = "",
        connections: int = CONNECTIONS,
    ) -> None:
        super().__init__("http://localhost", connections=connections)
        self._program = program
        self._config = [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
        self._context = context
        self._starting = asyncio.Lock()
        self._child: _Child | None = None

    async def check(self) -> None:
        """Raise a UserError that says what to do if kubectl is of no use, or has no login."""
        try:
            await self.get("/version", dict[str, Any])
        except ApiFault as fault:
            raise UserError(await self._advice(fault)) from None

    async def close(self) -> None:
        await super().close()
        child, self._child = self._child, None
        if child:
            await child.stop()

    async def _opened(self) -> HttpClient:
        async with self._starting:
            if self._child is None or not self._child.is_alive:
                await self.close()
                context = [f"--context={self._context}"] if self._context else []
                self._child = await _started([self._program, "proxy", *self._config, *context])
                self._client = HttpClient(
                    connections=self._connections, kept=self._connections, unix_socket=self._child.socket
                )
        return self._client

    async def _advice(self, fault: ApiFault) -> str:
        if fault.reason == "unauthorized":
            return f"the cluster refuses the login of {self._who}; log in again, then {_TRY}"
        if "context" in fault.detail and "does not exist" in fault.detail:
            found = await self._contexts()
            return f"there is no context {self._context!r}; choose one with --context: {found}"
        return f"kubectl gives no access to the cluster ({fault.detail}); {_TRY}"

    @property
    def _who(self) -> str:
        return f"context {self._context!r}" if self._context else "the current context"

    async def _contexts(self) -> str:
        """Name the contexts there are."""
        process = await asyncio.create_subprocess_exec(
            *(self._program, "config", "get-contexts", "--output=name", *self._config),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        found, _ = await process.communicate()
        return ", ".join(sorted(found.decode(errors="replace").split())) or "none"


class _Child:
    """A `kubectl proxy`, its folder, and the last lines it wrote about errors."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self.socket = folder / "api"
        self._process = process
        self._folder = folder
        self._lines: deque[str] = deque(maxlen=LINES_KEPT)
        self._listening = Supervisor().supervise("kubectl", self._listen)

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    @property
    def said(self) -> str:
        """The last error, without the time and place that kubectl logs before it."""
        last = self._lines[-1] if self._lines else ""
        return last.partition("] ")[2] or last

    async def is_listening(self) -> bool:
        try:
            _, writer = await asyncio.open_unix_connection(self.socket)
        except OSError:
            return False
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        return True

    async def stop(self) -> None:
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), STOP_SECONDS)
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        await asyncio.wait({self._listening}, timeout=STOP_SECONDS)
        await end(self._listening)
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _listen(self) -> None:
        stream = self._process.stderr
        while stream and (chunk := await stream.read(LONGEST_LINE)):
            lines = chunk.decode(errors="replace").splitlines()
            self._lines.extend(line for line in lines if line.strip())


async def _started(command: Sequence[str]) -> _Child:
    folder = Path(tempfile.mkdtemp(prefix="podgpu-"))  # only this user may enter it
    try:
        process = await asyncio.create_subprocess_exec(
            *(*command, f"--unix-socket={folder / 'api'}"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            preexec_fn=_end_with_parent(),
        )
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise ApiFault("unreachable", f"{command[0]}: {error.strerror}") from None
    child = _Child(process, folder)
    try:
        async with asyncio.timeout(START_SECONDS):
            while child.is_alive and not await child.is_listening():  # noqa: ASYNC110 - kubectl does not say so
                await asyncio.sleep(LOOK_SECONDS)
    except BaseException as error:
        await child.stop()
        if isinstance(error, TimeoutError):
            raise ApiFault("unreachable", f"kubectl proxy did not start within {START_SECONDS:g} s") from None
        raise
    if not child.is_alive:
        await child.stop()
        raise ApiFault("unreachable", child.said or "kubectl proxy ended at once")
    return child


def _end_with_parent() -> Callable[[], None] | None:
    """Let the kernel end the child when this process is killed and cannot do so itself."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
