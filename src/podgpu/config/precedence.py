"""Flag, environment, file, default: who wins. The one place where options are read."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from podgpu.config import OPTIONS, Config
from podgpu.config.option import Environ, Option
from podgpu.config.spelling import did_you_mean
from podgpu.errors import UserError

_FILE_LIMIT = 1 << 20
_BY_KEY = {option.key: name for name, option in OPTIONS.items() if option.in_file}


class Given(NamedTuple):
    """What somebody wrote for one option, and where."""

    texts: Sequence[str]
    place: str


def load(flags: Mapping[str, Sequence[str]], environ: Environ) -> Config:
    """Find every option's value. `flags` holds the texts given on the command line, by field of Config."""
    given = _from_environment(environ) | _from_flags(flags)
    path = _value("config_file", given, environ)
    if path is not None:
        given = _from_file(Path(str(path))) | given
    return Config(**{name: _value(name, given, environ) for name in OPTIONS})


def _value(name: str, given: Mapping[str, Given], environ: Environ) -> Any:
    if name not in given:
        return OPTIONS[name].default_value(environ)
    try:
        return OPTIONS[name].value(given[name].texts)
    except UserError as error:
        raise UserError(f"{given[name].place}: {error}") from None


def _from_flags(flags: Mapping[str, Sequence[str]]) -> dict[str, Given]:
    return {name: Given(texts, OPTIONS[name].flag) for name, texts in flags.items()}


def _from_environment(environ: Environ) -> dict[str, Given]:
    """Unknown PODGPU_ names are left alone: Kubernetes sets some for a Service named podgpu."""
    found = ((name, option.environment) for name, option in OPTIONS.items())
    return {name: Given([environ[variable]], variable) for name, variable in found if environ.get(variable)}


def _from_file(path: Path) -> dict[str, Given]:
    document = _document(path)
    if document in ("", None):
        return {}
    if not isinstance(document, dict):
        raise UserError(f"{path}: the file must hold keys and values, such as 'interval: 5s'")
    return {name: Given(texts, f"{path}: {OPTIONS[name].key}") for name, texts in _leaves(document, "", path)}


def _leaves(section: Mapping[str, object], above: str, path: Path) -> Iterator[tuple[str, list[str]]]:
    for word, value in section.items():
        key = f"{above}{word}"
        if key in _BY_KEY:
            texts = _texts(OPTIONS[_BY_KEY[key]], value, path)
            if any(texts):
                yield _BY_KEY[key], texts
        elif not any(known.startswith(f"{key}.") for known in _BY_KEY):
            advice = did_you_mean(key, _BY_KEY, "docs/configuration.md lists the keys")
            raise UserError(f"{path}: unknown key {key!r}; {advice}")
        elif isinstance(value, dict):
            yield from _leaves(value, f"{key}.", path)
        elif value:
            raise UserError(f"{path}: {key} is a section; put its keys below it, indented")


def _texts(option: Option[Any], value: object, path: Path) -> list[str]:
    if isinstance(value, str):
        return [value]
    if option.repeatable and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    wanted = "one value or a list of values" if option.repeatable else "one value"
    raise UserError(f"{path}: {option.key} takes {wanted}; see docs/configuration.md")


def _document(path: Path) -> object:
    """Scalars stay text, so that the file is read by the same rules as the flags."""
    import yaml

    text = _text(path)
    try:
        document: object = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - text, lists and maps alone
        _refuse_twice(yaml.compose(text, Loader=yaml.BaseLoader), path)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise UserError(f"{path}: {line}not valid YAML, {error.problem}; correct the file") from None
    except (yaml.YAMLError, RecursionError):
        raise UserError(f"{path}: not valid YAML; correct the file") from None
    return document


def _refuse_twice(node: Any, path: Path) -> None:
    """YAML lets a key stand twice and forgets the first: settings would be lost without a word."""
    if node is None or not isinstance(node.value, list):
        return
    for child in node.value:
        if isinstance(child, tuple):
            key, value = child
            if sum(other.value == key.value for other, _ in node.value) > 1:
                line = key.start_mark.line + 1
                raise UserError(f"{path}: line {line}: {key.value!r} stands twice; put its keys together")
            _refuse_twice(value, path)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_FILE_LIMIT + 1)
        if len(data) > _FILE_LIMIT:
            raise UserError(f"{path}: larger than 1 MiB; give a configuration file")
        return data.decode()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; check --config.file") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not UTF-8 text; save it as UTF-8") from None
