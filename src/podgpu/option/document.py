"""YAML files. All their scalars are text, so that the same rules apply as for flags."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from podgpu.errors import UserError
from podgpu.option.file import text_of


class Malformed(Exception):
    """Why the text is not read. `what` may quote it; `is_alias` tells a mistake that quotes nothing."""

    def __init__(self, line: int, what: str, *, is_alias: bool = False) -> None:
        super().__init__(line, what)
        self.what = f"line {line}: {what}" if line else what
        self.is_alias = is_alias


def yaml_document(path: Path, advice: str, *, kibibytes: int = 1024) -> object:
    """Load the file: text, lists and maps. `advice` says what to do when it cannot be read."""
    text = text_of(str(path), kibibytes=kibibytes, advice=advice)
    try:
        return parsed(text)
    except Malformed as error:
        raise UserError(f"{path}: {error.what}") from None


def parsed(text: str) -> object:
    """Read YAML without aliases: a few lines of them stand for more than fits into memory. Raises Malformed."""
    import yaml

    class Loader(yaml.BaseLoader):  # loads only text, lists and maps
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                event = self.peek_event()  # type: ignore[no-untyped-call]
                what = f"*{event.anchor} is an alias; write out what it stands for"
                raise Malformed(event.start_mark.line + 1, what, is_alias=True)
            return super().compose_node(parent, index)

    try:
        loader = Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _refuse_twice(node)
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise Malformed(line, f"not valid YAML, {error.problem}; correct the file") from None
    except (yaml.YAMLError, RecursionError):
        raise Malformed(0, "not valid YAML; correct the file") from None


def _refuse_twice(node: Any) -> None:
    """Refuse a key that appears twice: YAML would silently ignore the first."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if not isinstance(found.value, list):
            continue
        waiting += _values(found.value)


def _values(children: list[Any]) -> Iterator[Any]:
    seen: set[str] = set()
    for child in children:
        if not isinstance(child, tuple):
            yield child
            continue
        key, value = child
        if isinstance(key.value, str):
            if key.value in seen:
                line = key.start_mark.line + 1
                raise Malformed(line, f"{key.value!r} appears twice; put its keys together")
            seen.add(key.value)
        yield value
