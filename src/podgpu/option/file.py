"""Files that options name. They are read together with the options, so that a mistake is reported at the start."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from podgpu.errors import UserError
from podgpu.option.value import ValueParser

T = TypeVar("T")
_KIB = 1 << 10


def _existing_file(text: str) -> Path:
    path = Path(text)
    try:
        is_there = path.is_file()
    except OSError as error:  # a folder that may not be entered, or the content of a file in place of its path
        raise UserError(f"cannot read {text[:80]!r}: {error.strerror}; give the path of a file") from None
    if not is_there:
        raise UserError(f"there is no file {text!r}; give the path of one that exists")
    return path.absolute()  # the system's loader looks for a bare name elsewhere


existing_file = ValueParser("PATH", _existing_file)


def text_file(parse: Callable[[str, str], T], *, kibibytes: int, advice: str) -> ValueParser[T]:
    """Turn the text of a file into a value. `parse` gets the path, for its messages, and the text."""

    def read(path: str) -> T:
        return parse(path, text_of(path, kibibytes=kibibytes, advice=advice))

    return ValueParser("PATH", read)


def bytes_of(path: str | Path, *, kibibytes: int, advice: str) -> bytes:
    try:
        data = start_of(Path(path), kibibytes * _KIB + 1)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; {advice}") from None
    if len(data) > kibibytes * _KIB:
        raise UserError(f"{path}: larger than {_size(kibibytes)}; {advice}")
    return data


def text_of(path: str | Path, *, kibibytes: int, advice: str) -> str:
    data = bytes_of(path, kibibytes=kibibytes, advice=advice)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}, line {line}: not UTF-8 text; save it as UTF-8, and {advice}") from None


def start_of(path: Path, most: int) -> bytes:
    """Read up to that many bytes of a regular file. A pipe or a device could be endless, or block."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return file.read(most)


def _size(kibibytes: int) -> str:
    return f"{kibibytes} KiB" if kibibytes % _KIB else f"{kibibytes // _KIB} MiB"


class Malformed(Exception):
    """What is wrong with a text. `what` may quote it, unless `is_alias`."""

    def __init__(self, line: int, what: str, *, is_alias: bool = False) -> None:
        super().__init__(line, what)
        self.what = f"line {line}: {what}" if line else what
        self.is_alias = is_alias


def yaml_document(path: Path, advice: str, *, kibibytes: int = 1024) -> object:
    """Load the file: text, lists and maps. `advice` says what to do when it cannot be read."""
    text = text_of(path, kibibytes=kibibytes, advice=advice)
    try:
        return parsed(text)
    except Malformed as error:
        raise UserError(f"{path}: {error.what}") from None


def parsed(text: str) -> object:
    """Read YAML without aliases, a few lines of which can stand for more than fits into memory. Raises Malformed."""
    import yaml

    class Loader(yaml.BaseLoader):  # loads only text, lists and maps
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                event = self.peek_event()  # type: ignore[no-untyped-call]
                what = f"*{event.anchor} is an alias; write out what it stands for"
                raise Malformed(event.start_mark.line + 1, what, is_alias=True)
            return super().compose_node(parent, index)

        def construct_scalar(self, node: Any) -> Any:
            text = super().construct_scalar(node)
            if "\0" in text:
                raise Malformed(node.start_mark.line + 1, "a value must not contain NUL; remove it")
            return text

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002
            """Refuse a key that appears twice: YAML would silently ignore the first."""
            seen: set[str] = set()
            for key in (key for key, _ in node.value if isinstance(key.value, str)):
                if key.value in seen:
                    what = f"{key.value!r} appears twice; put its keys together"
                    raise Malformed(key.start_mark.line + 1, what)
                seen.add(key.value)
            return super().construct_mapping(node, deep)

    try:
        return Loader(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise Malformed(line, f"not valid YAML, {error.problem}; correct the file") from None
    except (yaml.YAMLError, RecursionError):
        raise Malformed(0, "not valid YAML; correct the file") from None
