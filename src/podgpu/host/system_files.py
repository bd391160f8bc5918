"""Files of the system, read up to a limit. A file that cannot be read is None."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")

# A pipe would block the reader, and a link could lead anywhere.
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def read_limited(path: Path, most: int) -> bytes | None:
    """Return a regular file's bytes, unless it has more than `most`."""
    try:
        with os.fdopen(os.open(path, _FLAGS), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            data = file.read(most + 1)
    except OSError:
        return None
    return data if len(data) <= most else None


class ParsedFile(Generic[T]):
    """The parsed content of a file, read again only when it has changed."""

    def __init__(self, path: Path, most: int, parse: Callable[[bytes], T]) -> None:
        self._path = path
        self._most = most
        self._parse = parse
        self._seal: tuple[int, int, int] | None = None
        self._value = parse(b"")

    def get(self) -> T:
        """Return the value. A missing file counts as an empty file."""
        seal = _seal(self._path)
        if seal != self._seal:
            self._value = self._parse(read_limited(self._path, self._most) or b"")
            self._seal = seal
        return self._value


def _seal(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
