import logging
from collections.abc import Iterator

import pytest

from podgpu.log import LineHandler


@pytest.fixture(autouse=True)
def logging_stays_inside() -> Iterator[None]:
    """Undo the logging that a command sets up."""
    root = logging.getLogger()
    level = root.level
    yield
    for handler in [each for each in root.handlers if isinstance(each, LineHandler)]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level)
