"""Writes each event as one line of logfmt or JSON to stderr. Repeats are folded; nothing here raises or waits.

log.warning("the GPU does not answer", gpu=3, seconds=2.5)
"""

import logging

from podgpu.log.handler import LineHandler
from podgpu.log.line import FORMATS, LEVELS

__all__ = ["configure", "debug", "error", "info", "warning"]

_LOGGER = logging.getLogger("podgpu")


def debug(message: str, /, **fields: object) -> None:
    _LOGGER.debug("%s", message, extra={"fields": fields})


def info(message: str, /, **fields: object) -> None:
    _LOGGER.info("%s", message, extra={"fields": fields})


def warning(message: str, /, **fields: object) -> None:
    _LOGGER.warning("%s", message, extra={"fields": fields})


def error(message: str, /, **fields: object) -> None:
    """Write an error. Exceptions among the fields are shown with their type and message."""
    _LOGGER.error("%s", message, extra={"fields": fields})


def configure(level: str, log_format: str, descriptor: int = 2) -> None:
    """Send all log records, from podgpu and from libraries, to the descriptor."""
    root = logging.getLogger()
    for handler in [known for known in root.handlers if isinstance(known, LineHandler)]:
        root.removeHandler(handler)
        handler.close()
    root.addHandler(LineHandler(descriptor, FORMATS[log_format]))
    root.setLevel(LEVELS[level])
