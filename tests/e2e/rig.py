"""Programs in the background, found by what they log, and a client that takes every answer."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.patience import PATIENCE

T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Message
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def content_type(self) -> str:
        return self.headers["Content-Type"]

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def series(self) -> list[str]:
        """The names and labels of a page of metrics, as they are written there."""
        return [line.rpartition(" ")[0] for line in self.text.splitlines() if not line.startswith("#")]

    @property
    def families(self) -> list[str]:
        return re.findall(r"^# TYPE (\S+)", self.text, re.MULTILINE)


def get(url: str, method: str = "GET", **headers: str) -> Answer:
    request = Request(url, method=method, headers=headers)
    try:
        with urlopen(request, timeout=PATIENCE) as answer:
            return Answer(answer.status, answer.headers, answer.read())
    except HTTPError as refusal:
        with refusal:
            return Answer(refusal.code, refusal.headers, refusal.read())


def eventually(ask: Callable[[], T], good: Callable[[T], bool] = bool) -> T:
    """Ask until the answer is good. In any case return the last answer, for the test to judge."""
    deadline = time.monotonic() + PATIENCE
    while not good(answer := ask()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return answer


@contextmanager
def running(arguments: Iterable[str], log: Path) -> Iterator[None]:
    with log.open("w") as output:
        program = subprocess.Popen(list(arguments), stdout=output, stderr=output)
    try:
        yield
    except BaseException as failure:
        failure.add_note(f"{program.args!r} ended with {program.poll()} and logged:\n{log.read_text()[-4000:]}")
        raise
    finally:
        program.terminate()
        try:
            program.wait(PATIENCE)
        finally:
            program.kill()


def logged(log: Path, pattern: str) -> str:
    """Wait for a line and return what its group holds."""
    found = eventually(lambda: re.search(pattern, log.read_text()))
    assert found, f"{pattern} is not in: {log.read_text()}"
    return found[1]


@dataclass(frozen=True)
class Demo:
    """`urls` are those of its addresses, by dialect."""

    urls: Mapping[str, str]

    def snapshot(self) -> Any:
        return get(f"{self.urls['native']}/api/v1/snapshot").json()

    def tenants(self) -> list[Any]:
        return [tenant for card in self.snapshot()["cards"] for tenant in card["tenants"]]


@contextmanager
def demo(dialects: Iterable[str], log: Path, *options: str) -> Iterator[Demo]:
    """Serve the simulated node, with an address of its own for each dialect, on ports that are free."""
    places = [f"--web.listen-address=127.0.0.1:0={name}" for name in dialects]
    with running([sys.executable, "-m", "podgpu", "demo", *places, *options], log):
        addresses = logged(log, r'addresses="?([^"\s]+)').split(",")
        found = (address.partition("=") for address in addresses)
        here = Demo({dialect or "native": f"http://{place}" for place, _, dialect in found})
        # What a container draws takes two readings: then every series is there.
        eventually(lambda: any("power_watts" in tenant["booking"] for tenant in here.tenants()))
        yield here


@contextmanager
def cluster(log: Path, *options: str) -> Iterator[str]:
    """Start `podgpu cluster`, and yield its address."""
    program = [
        sys.executable,
        "-m",
        "podgpu",
        "cluster",
        "--web.listen-address=127.0.0.1:0",
        "--cluster.interval=2s",
    ]
    with running([*program, *options], log):
        address = logged(log, r"addresses=(127\S+)")
        yield f"http://{address}"
