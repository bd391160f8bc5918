"""The account of a kubeconfig, and the API server through the user's own kubectl, which knows every kind of login.

What podgpu cannot do with a kubeconfig is refused, so that no login is used by half.
"""

import asyncio
import base64
import binascii
import ctypes
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from podgpu.errors import UserError
from podgpu.kube.api import CONNECTIONS, ApiAccount, ApiFault, ApiServer
from podgpu.net.client import HttpClient
from podgpu.net.login import ClientCertificate, Login
from podgpu.option.file import Malformed, existing_file, parsed, text_of
from podgpu.supervise import Supervisor, end

MOST_KIB = 1024
_ADVICE = "check --kube.kubeconfig"

_FOR_CLUSTER = {
    "insecure-skip-tls-verify": "podgpu always checks the server's certificate; give its certificate-authority",
    "proxy-url": "podgpu uses no proxy; give an address that it can reach",
    "tls-server-name": "podgpu checks the certificate against the address; give an address that is in it",
}
_TOKEN = "make a service account for podgpu and give its token"  # noqa: S105 - no password
_FOR_USER = {
    "exec": f"podgpu runs no other programs; {_TOKEN}",
    "auth-provider": f"auth providers are gone from Kubernetes; {_TOKEN}",
    "username": f"passwords are gone from Kubernetes; {_TOKEN}",
    "password": f"passwords are gone from Kubernetes; {_TOKEN}",
    "as": f"podgpu does not impersonate other users; {_TOKEN}",
}


class ConfigEntry(Struct, frozen=True):
    """A part of the file. Its name begins every message; values never show."""

    path: Path
    name: str
    values: Mapping[str, Any]

    def error(self, problem: str) -> UserError:
        return UserError(f"{self.path}: {self.name}: {problem}")

    def refuse(self, unsupported: Mapping[str, str]) -> None:
        for key, advice in unsupported.items():
            if self.values.get(key) not in (None, "", "false", {}, []):
                raise self.error(f"{key} is not supported: {advice}")

    def text(self, key: str) -> str:
        value = self.values.get(key, "")
        if not isinstance(value, str):
            raise self.error(f"{key} must be text")
        return value.strip()

    def file(self, key: str) -> Path | None:
        """A relative path starts at the kubeconfig's folder."""
        name = self.text(key)
        try:
            return existing_file(str(self.path.parent / name)) if name else None
        except UserError as error:
            raise self.error(f"{key}: {error}") from None

    def pem(self, key: str) -> str:
        try:
            return base64.b64decode(self.text(key), validate=True).decode("ascii")
        except (binascii.Error, ValueError):
            raise self.error(f"{key} is not base64 of a PEM text; write it again") from None


def account(path: Path, context: str = "") -> ApiAccount:
    """Return the account of a context, or of the current one. Raises UserError."""
    document = _document(path)
    if not _entries(document, "context"):
        raise UserError(f"{path} has no contexts; give a kubeconfig that has one with --kube.kubeconfig")
    name = context or document.text("current-context")
    if not name:
        raise UserError(f"{path} has no current-context; choose one with --kube.context: {_names(document, 'context')}")
    chosen = _named(document, "context", name)
    cluster = _named(document, "cluster", chosen.text("cluster"))
    user_name = chosen.text("user")
    user = _named(document, "user", user_name) if user_name else ConfigEntry(path, "no user", {})
    cluster.refuse(_FOR_CLUSTER)
    user.refuse(_FOR_USER)
    url = cluster.text("server")
    if not url.startswith(("https://", "http://")):
        raise cluster.error("server is not a URL; write it like https://10.0.0.1:6443")
    ca = cluster.pem("certificate-authority-data")
    token_file = user.file("tokenFile")
    return ApiAccount(
        url,
        Login(
            token_file=token_file,
            token="" if token_file else _token(user),
            ca_file=None if ca else cluster.file("certificate-authority"),
            ca=ca,
            client=_client(user),
        ),
    )


def _token(user: ConfigEntry) -> str:
    token = user.text("token")
    if not (token.isascii() and token.isprintable()):
        raise user.error("token holds characters that no token has; write it again")
    return token


def _client(user: ConfigEntry) -> ClientCertificate | None:
    cert, key = (user.pem(f"{name}-data") or user.file(name) for name in ("client-certificate", "client-key"))
    if not cert and not key:
        return None
    if not cert or not key:
        raise user.error("client-certificate and client-key go together; give both or none")
    return ClientCertificate(cert=cert, key=key)


def _named(document: ConfigEntry, kind: str, name: str) -> ConfigEntry:
    for entry in _entries(document, kind):
        if entry.get("name") == name and isinstance(entry.get(kind), dict):
            return ConfigEntry(document.path, f"{kind} {name!r}", entry[kind])
    raise UserError(f"{document.path} has no {kind} {name!r}; it has {_names(document, kind)}")


def _names(document: ConfigEntry, kind: str) -> str:
    return ", ".join(str(entry.get("name")) for entry in _entries(document, kind)) or "none"


def _entries(document: ConfigEntry, kind: str) -> list[Mapping[str, Any]]:
    listed = document.values.get(f"{kind}s")
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def _document(path: Path) -> ConfigEntry:
    try:
        document = parsed(text_of(path, kibibytes=MOST_KIB, advice=_ADVICE))
    except Malformed as error:
        # The parser's own message may quote a secret.
        raise UserError(f"{path}: {error.what}" if error.is_alias else f"{path} is not valid YAML; {_ADVICE}") from None
    if not isinstance(document, dict):
        raise UserError(f"{path} is not a kubeconfig; {_ADVICE}")
    return ConfigEntry(path, "kubeconfig", document)


START_SECONDS = 15.0
LOOK_SECONDS = 0.02
STOP_SECONDS = 2.0
LINES_SHOWN, MOST_STDERR = 4, 8192
_PR_SET_PDEATHSIG = 1
_TRY = "try `kubectl get nodes`"
_LOG_PREFIX = re.compile(r"[IWEF]\d{4} [^]]*\] ")


class KubectlApi(ApiServer):
    """Requests through a `kubectl proxy`, which is started by the first request, and again if it has ended."""

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
            who = f"context {self._context!r}" if self._context else "the current context"
            return f"the cluster refuses the login of {who}; log in again, then {_TRY}"
        if "context" in fault.detail and "does not exist" in fault.detail:
            found = await self._contexts()
            advice = f"choose one with --context: {found}" if found else "the kubeconfig has none; choose another file"
            return f"there is no context {self._context!r}; {advice}"
        return f"kubectl gives no access to the cluster ({fault.detail}); {_TRY}"

    async def _contexts(self) -> str:
        process = await asyncio.create_subprocess_exec(
            *(self._program, "config", "get-contexts", "--output=name", *self._config),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        found, _ = await process.communicate()
        return ", ".join(sorted(found.decode(errors="replace").split()))


class _Child:
    """A `kubectl proxy`, the folder of its socket, and what it wrote to stderr at first."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self.socket = folder / "api"
        self._process = process
        self._folder = folder
        self._stderr = b""
        self._reading = Supervisor().supervise("kubectl", self._read_errors)

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    @property
    def error(self) -> str:
        """What it ended with. It may log warnings before, in lines that have a time and a place in front."""
        lines = [line.strip() for line in self._stderr.decode(errors="replace").splitlines() if line.strip()]
        plain = [line for line in lines if not _LOG_PREFIX.match(line)]
        return " ".join(plain[:LINES_SHOWN]) or (_LOG_PREFIX.sub("", lines[-1]) if lines else "")

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
        await asyncio.wait({self._reading}, timeout=STOP_SECONDS)
        await end(self._reading)
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _read_errors(self) -> None:
        stream = self._process.stderr
        while stream and (chunk := await stream.read(MOST_STDERR)):
            self._stderr = (self._stderr + chunk)[:MOST_STDERR]


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
        raise ApiFault("unreachable", child.error or "kubectl proxy ended at once")
    return child


def _end_with_parent() -> Callable[[], None] | None:
    """Let the kernel end the child when this process is killed and cannot do so itself."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
