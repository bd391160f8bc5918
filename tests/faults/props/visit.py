"""Lets clients loose on an agent, and asks them how they fared."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.node import Node
from tests.faults.page import Page
from tests.faults.play import Sign

Tally = dict[str, int]


class Visit:
    """Clients of one kind. `clients` has the kinds."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._file: Path | None = None

    @contextmanager
    def fault(self, node: Node) -> Iterator[None]:
        """The clients come before the agent does, if there is none yet, and go at the end."""
        self._file = node.folder / "tally"
        self._file.unlink(missing_ok=True)
        words = [
            sys.executable,
            "-m",
            "tests.faults.props.clients",
            self._kind,
            str(node.port),
            str(self._file),
        ]
        clients = subprocess.Popen(words)
        try:
            yield
        finally:
            clients.kill()
            clients.wait()
            self._file = None

    def fared(self, proof: Callable[[Tally], bool]) -> Sign:
        """The agent is up, and the clients met what they should."""

        def sign(now: Page, _: Page) -> bool:
            return now.value("podgpu_up") == 1 and proof(self._tally())

        return sign

    def _tally(self) -> Tally:
        if self._file is None or not self._file.exists():
            return {}
        found: Tally = json.loads(self._file.read_text())
        return found
