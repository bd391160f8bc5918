"""YAML files. All their scalars are text, so that the same rules apply as for flags."""

from pathlib import Path
from typing import Any

from podgpu.errors import UserError
from podgpu.option.file import text_of


def yaml_document(path: Path, advice: str) -> object:
    """Load the file: text, lists and maps. `advice` says what to do when it cannot be read."""
    import yaml

    text = text_of(str(path), kibibytes=1024, advice=advice)
    try:
        document: object = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - loads only text, lists and maps
        _refuse_twice(yaml.compose(text, Loader=yaml.BaseLoader), path)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise UserError(f"{path}: {line}not valid YAML, {error.problem}; correct the file") from None
    except (yaml.YAMLError, RecursionError):
        raise UserError(f"{path}: not valid YAML; correct the file") from None
    return document


def _refuse_twice(node: Any, path: Path) -> None:
    """Refuse a key that appears twice: YAML would silently ignore the first."""
    if node is None or not isinstance(node.value, list):
        return
    for child in node.value:
        if isinstance(child, tuple):
            key, value = child
            if sum(other.value == key.value for other, _ in node.value) > 1:
                line = key.start_mark.line + 1
                raise UserError(f"{path}: line {line}: {key.value!r} appears twice; put its keys together")
            _refuse_twice(value, path)
