import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pynvml
import pytest

from tests.fakenvml.build import build
from tests.fakenvml.stage import Stage


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build it once for a run, however many processes share the tests."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    return build(shared / "fakenvml")


@pytest.fixture
def stage(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    monkeypatch.setenv("FAKENVML_SCRIPT", str(tmp_path / "script"))
    monkeypatch.setenv("FAKENVML_DEV", str(tmp_path / "dev"))
    monkeypatch.setenv("FAKENVML_LOG", str(tmp_path / "log"))
    stage = Stage(tmp_path, library)
    yield stage
    with suppress(pynvml.NVMLError):
        stage.node.faults.clear()
        stage.rewrite()
        pynvml.nvmlShutdown()
