import logging
import os
from collections.abc import Iterator

import pytest

from podgpu.log.handler import LineHandler


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Neither this machine's settings come in, nor the command's logging out."""
    for name in [name for name in os.environ if name.startswith("PODGPU_")]:
        monkeypatch.delenv(name)
    root = logging.getLogger()
    level = root.level
    yield
    for handler in [each for each in root.handlers if isinstance(each, LineHandler)]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level)
