"""Reads the options. A flag wins over the environment, the environment over the file, the file over the default."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from podgpu.config.fields import Config
from podgpu.config.sections import OPTIONS, SECTIONS
from podgpu.errors import UserError
from podgpu.option import Environ, Option, options_of
from podgpu.option.file import yaml_document
from podgpu.option.value import did_you_mean

T = TypeVar("T")
NameOf = Callable[[Option[Any]], str]
TextsByName = dict[str, "OptionTexts"]  # by the options' Python names
PREFIX = "PODGPU_"
_OF_SERVICES = re.compile(r"PODGPU_(?:.+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_.+)?|PORT(?:_[0-9].*)?)")


class OptionTexts(NamedTuple):
    """The texts of an option, and where they were set. `now` is its present name, if they use a former one."""

    texts: Sequence[str]
    place: str
    now: str = ""


def load(flags: Mapping[str, Sequence[str]], environ: Environ) -> Config:
    """Find the value of every option. `flags` holds the texts of the command line, by the options' Python names."""
    variables = {name: [text] for name, text in environ.items() if text}
    chosen = _named(variables, lambda option: option.environment, lambda option: option.environment)
    chosen |= _named(flags, lambda option: option.name, lambda option: option.flag)
    if "config_file" in chosen:
        chosen = _from_file(Path(str(_value("config_file", chosen["config_file"])))) | chosen
    values = {name: _value(name, texts) for name, texts in (_from_others(environ) | chosen).items()}
    sections: Iterator[object] = (_filled(section, values) for section in SECTIONS)
    outdated = tuple((texts.place, texts.now) for texts in chosen.values() if texts.now)
    changed = tuple(section for section in sections if section != type(section)())
    return _filled(Config, values, sections=changed, outdated=outdated, unknown=tuple(_unknown(environ)))


def _named(texts: Mapping[str, Sequence[str]], key: NameOf, shown: NameOf, path: str = "") -> TextsByName:
    """Find the options that `texts` sets. `key` names an option there, and `shown` in messages.

    A present name wins over a former one.
    """
    return {
        option.name: OptionTexts(
            texts[key(spelling)], f"{path}{shown(spelling)}", now="" if spelling is option else shown(option)
        )
        for spelling, option in spellings()
        if key(spelling) in texts
    }


def spellings() -> Iterator[tuple[Option[Any], Option[Any]]]:
    """Yield each option by its names, and the option itself. Former names come before the present ones."""
    for option in OPTIONS.values():
        if option.former:
            yield option.former, option
        yield option, option


def _filled(section: type[T], values: Mapping[str, object], **more: object) -> T:
    names = {field: option.name for field, option in options_of(section).items()}
    return section(**{field: values[name] for field, name in names.items() if name in values}, **more)


def _value(name: str, texts: OptionTexts) -> object:
    try:
        return OPTIONS[name].value(texts.texts)
    except UserError as error:
        raise UserError(f"{texts.place}: {error}") from None


def _from_others(environ: Environ) -> TextsByName:
    """Read variables that Kubernetes or another program sets, for options that the user did not set."""
    variables = ((name, variable) for name, option in OPTIONS.items() for variable in reversed(option.also_from))
    return {name: OptionTexts([environ[variable]], variable) for name, variable in variables if environ.get(variable)}


def _unknown(environ: Environ) -> Iterator[tuple[str, str]]:
    """Yield names that look like options, with advice. Kubernetes sets some for a Service named podgpu."""
    known = {spelling.environment.removeprefix(PREFIX) for spelling, _ in spellings()}
    for name in sorted(environ):
        word = name.removeprefix(PREFIX)
        if name.startswith(PREFIX) and word not in known and not _OF_SERVICES.fullmatch(name):
            advice = did_you_mean(word, known, "docs/configuration.md lists the options")
            yield name, advice.replace("did you mean ", f"did you mean {PREFIX}")


def _from_file(path: Path) -> TextsByName:
    document = yaml_document(path, "check --config.file")
    if document in ("", None):
        return {}
    if not isinstance(document, dict):
        raise UserError(f"{path}: the file must hold keys and values, such as 'interval: 5s'")
    by_key = {spelling.key: spelling for spelling, _ in spellings() if spelling.in_file}
    texts = dict(_leaves(document, "", path, by_key))
    return _named(texts, lambda option: option.key, lambda option: option.key, f"{path}: ")


def _leaves(
    section: Mapping[str, object], above: str, path: Path, by_key: Mapping[str, Option[Any]]
) -> Iterator[tuple[str, list[str]]]:
    for word, value in section.items():
        key = f"{above}{word}"
        if key in by_key:
            texts = _texts(by_key[key], value, path)
            if any(texts):
                yield key, texts
        elif not any(known.startswith(f"{key}.") for known in by_key):
            advice = did_you_mean(key, by_key, "docs/configuration.md lists the keys")
            raise UserError(f"{path}: unknown key {key!r}; {advice}")
        elif isinstance(value, dict):
            yield from _leaves(value, f"{key}.", path, by_key)
        elif value:
            raise UserError(f"{path}: {key} is a section; put its keys below it, indented")


def _texts(option: Option[Any], value: object, path: Path) -> list[str]:
    if isinstance(value, str):
        return [value]
    if option.repeatable and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    wanted = "one value or a list of values" if option.repeatable else "one value"
    raise UserError(f"{path}: {option.key} takes {wanted}; see docs/configuration.md")
