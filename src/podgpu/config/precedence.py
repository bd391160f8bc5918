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
PREFIX = "PODGPU_"
_OF_SERVICES = re.compile(r"PODGPU_(?:.+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_.+)?|PORT(?:_[0-9].*)?)")


class OptionTexts(NamedTuple):
    """The texts that were given for an option, and where. `now` is the present name of an outdated one."""

    texts: Sequence[str]
    place: str
    now: str = ""


class Spelling(NamedTuple):
    """An option by its present names, or by its former ones."""

    option: Option[Any]
    present: Option[Any]

    def with_texts(
        self, texts: Sequence[str], form: Callable[[Option[Any]], str], path: str = ""
    ) -> OptionTexts:
        now = "" if self.option is self.present else form(self.present)
        return OptionTexts(texts, f"{path}{form(self.option)}", now)


def spellings() -> Iterator[Spelling]:
    """List the former names first, so that the present ones win."""
    for option in OPTIONS.values():
        if option.former:
            yield Spelling(option.former, option)
        yield Spelling(option, option)


def load(flags: Mapping[str, Sequence[str]], environ: Environ) -> Config:
    """Find the value of every option. `flags` holds the texts of the command line, by the options' Python names."""
    given = _from_environment(environ) | _from_flags(flags)
    if "config_file" in given:
        given = _from_file(Path(str(_value("config_file", given["config_file"])))) | given
    values = {name: _value(name, texts) for name, texts in (_from_others(environ) | given).items()}
    sections: Iterator[object] = (_filled(section, values) for section in SECTIONS)
    outdated = tuple((texts.place, texts.now) for texts in given.values() if texts.now)
    changed = tuple(section for section in sections if section != type(section)())
    return _filled(Config, values, sections=changed, outdated=outdated, unknown=tuple(_unknown(environ)))


def _filled(section: type[T], values: Mapping[str, object], **more: object) -> T:
    own = {field: option.name for field, option in options_of(section).items()}
    return section(**{field: values[name] for field, name in own.items() if name in values}, **more)


def _value(name: str, given: OptionTexts) -> object:
    try:
        return OPTIONS[name].value(given.texts)
    except UserError as error:
        raise UserError(f"{given.place}: {error}") from None


def _from_others(environ: Environ) -> dict[str, OptionTexts]:
    """Read variables that Kubernetes or another program sets, for options that the user did not set."""
    found = ((name, variable) for name, option in OPTIONS.items() for variable in reversed(option.also_from))
    return {
        name: OptionTexts([environ[variable]], variable) for name, variable in found if environ.get(variable)
    }


def _from_flags(flags: Mapping[str, Sequence[str]]) -> dict[str, OptionTexts]:
    return {
        spelling.present.name: spelling.with_texts(flags[spelling.option.name], lambda option: option.flag)
        for spelling in spellings()
        if spelling.option.name in flags
    }


def _from_environment(environ: Environ) -> dict[str, OptionTexts]:
    """Unknown PODGPU_ names are no error, see below."""
    return {
        spelling.present.name: spelling.with_texts(
            [environ[spelling.option.environment]], lambda option: option.environment
        )
        for spelling in spellings()
        if environ.get(spelling.option.environment)
    }


def _unknown(environ: Environ) -> Iterator[tuple[str, str]]:
    """Yield names that look like options, with advice. Kubernetes sets some for a Service named podgpu."""
    known = {spelling.option.environment.removeprefix(PREFIX) for spelling in spellings()}
    for name in sorted(environ):
        word = name.removeprefix(PREFIX)
        if name.startswith(PREFIX) and word not in known and not _OF_SERVICES.fullmatch(name):
            advice = did_you_mean(word, known, "docs/configuration.md lists the options")
            yield name, advice.replace("did you mean ", f"did you mean {PREFIX}")


def _from_file(path: Path) -> dict[str, OptionTexts]:
    document = yaml_document(path, "check --config.file")
    if document in ("", None):
        return {}
    if not isinstance(document, dict):
        raise UserError(f"{path}: the file must hold keys and values, such as 'interval: 5s'")
    by_key = {spelling.option.key: spelling for spelling in spellings() if spelling.option.in_file}
    texts = dict(_leaves(document, "", path, by_key))
    return {
        spelling.present.name: spelling.with_texts(texts[key], lambda option: option.key, f"{path}: ")
        for key, spelling in by_key.items()
        if key in texts
    }


def _leaves(
    section: Mapping[str, object], above: str, path: Path, by_key: Mapping[str, Spelling]
) -> Iterator[tuple[str, list[str]]]:
    for word, value in section.items():
        key = f"{above}{word}"
        if key in by_key:
            texts = _texts(by_key[key].option, value, path)
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
