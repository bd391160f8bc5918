"""Files that options name. They are read together with the options, so that a mistake is reported at the start."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from podgpu.errors import UserError
from podgpu.option.value import ValueParser

T = TypeVar("T")
_KIB = 1 << 10


def _existing_file(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise UserError(f"there is no file {text!r}; give the path of one that exists")
    return path.absolute()  # the system's loader looks for a bare name elsewhere


existing_file = ValueParser("PATH", _existing_file)


def text_file(parse: Callable[[str, str], T], *, kibibytes: int, advice: str) -> ValueParser[T]:
    """Turn the text of a file into a value. `parse` gets the path, for its messages, and the text."""

    def read(path: str) -> T:
        return parse(path, text_of(path, kibibytes=kibibytes, advice=advice))

    return ValueParser("PATH", read)


def text_of(path: str, *, kibibytes: int, advice: str) -> str:
    try:
        data = start_of(Path(path), kibibytes * _KIB + 1)
        if len(data) > kibibytes * _KIB:
            raise UserError(f"{path}: larger than {_size(kibibytes)}; {advice}")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; {advice}") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}, line {line}: not UTF-8 text; save it as UTF-8, and {advice}") from None


def start_of(path: Path, most: int) -> bytes:
    """Read up to that many bytes of a regular file. A pipe or a device could have no end, or let us wait."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return file.read(most)


def _size(kibibytes: int) -> str:
    return f"{kibibytes} KiB" if kibibytes % _KIB else f"{kibibytes // _KIB} MiB"
