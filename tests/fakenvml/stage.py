"""What the fake library's own tests share."""

import ctypes
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pynvml
import pytest

from tests.fakenvml.fake_node import FakeGpu, FakeMig, FakeNode, FakeProcess, h200


@dataclass
class Stage:
    """A library of its own for one test, and the script it plays."""

    directory: Path
    library: Path
    node: FakeNode = field(default_factory=FakeNode)
    lib: Any = None

    def rewrite(self) -> None:
        self.node.write(self.directory / "script")

    def load(self, node: FakeNode) -> None:
        self.node = node
        self.rewrite()
        # The loader knows a library by its file: a copy is a fresh one.
        copy = shutil.copy(self.library, self.directory / "libnvidia-ml.so.1")
        self.lib = pynvml.nvmlLib = ctypes.CDLL(str(copy))

    def play(self, *gpus: FakeGpu, **rest: Any) -> Any:
        """Loads a node of these cards and gives the first one's handle."""
        self.load(FakeNode(list(gpus), **rest))
        pynvml.nvmlInit()
        return pynvml.nvmlDeviceGetHandleByIndex(0)

    def calls(self, name: str) -> int:
        return int(self.lib.fakenvml_calls(name.encode()))

    def open_files(self) -> list[str]:
        links = [entry.readlink() for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
        return sorted(link.name for link in links if link.parent == self.directory / "dev")


def code_of(call: Callable[[], object]) -> int:
    with pytest.raises(pynvml.NVMLError) as caught:
        call()
    return int(caught.value.value)


def gpu(number: int = 0, **rest: Any) -> FakeGpu:
    return FakeGpu(f"GPU-{number}", **rest)


def mig_card() -> FakeGpu:
    second = FakeMig("MIG-b", 2, 9, profile="2g.35gb", multiprocessors=32, gpu_slices=2, gpm={2: 40.0})
    first = FakeMig("MIG-a", 0, 7, memory_total=16 << 30, memory_used=3 << 30, gpm={2: 12.5})
    first.values["placement"], second.values["placement"] = 6, 2
    card = h200(0)
    card.mig_enabled, card.migs = True, [first, second]
    card.processes = [FakeProcess(70, 1, ("compute",), 7, 0), FakeProcess(90, 2, ("compute",), 9, 0, sm=50)]
    return card
