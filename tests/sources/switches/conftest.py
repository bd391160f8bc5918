from collections.abc import Iterator
from pathlib import Path

import pytest

from podgpu.sources.switches import watcher
from tests.fakeswitches.build import build
from tests.fakeswitches.node import SwitchNode


@pytest.fixture(scope="session")
def preload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("fakeswitches"))


@pytest.fixture
def node(preload: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SwitchNode]:
    """A node with two cards. Processes that the test starts see its device nodes, and may take their time to start."""
    monkeypatch.setattr(watcher, "PATIENCE", 60.0)
    node = SwitchNode(tmp_path / "dev", preload)
    for name, value in node.environment.items():
        monkeypatch.setenv(name, value)
    yield node
    assert not [call for call in node.calls() if "HAZARD" in call]
