"""The schema of one option below `config`: what the agent would refuse when it starts, Helm refuses before.

A schema compares numbers, but not texts such as 500ms. The bounds of these are in files/ranges.yaml, for the templates.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from podgpu.cluster.store.options import store_address
from podgpu.config.values import family_name, listener
from podgpu.option import Option
from podgpu.option.value import (
    Address,
    OneOf,
    ValueParser,
    absolute_path,
    api_server,
    base_address,
    header_name,
    network,
    page_address,
)
from podgpu.views.dialects import dialect_names
from podgpu.views.series import NAMES
from tools.chart import CHART

RANGES = CHART / "files/ranges.yaml"
Schema = dict[str, Any]

_UNITS = {"DURATION": r"(\.[0-9]{1,18})?(ms|s|m|h|d|w)?", "SIZE": "(KiB|MiB|GiB)?", "NUMBER": r"(\.[0-9]{1,9})?"}
_URL = r"https?://[^/?#\s,]+[^\s,]*"
_NETWORK = r"[0-9]{1,3}([.][0-9]{1,3}){3}(/[0-9]{1,2})?|[0-9A-Fa-f]{0,4}(:[0-9A-Fa-f]{0,4}){2,7}(/[0-9]{1,3})?"
_ADDRESS = r"([A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}"


def _listeners() -> str:
    return f"{_ADDRESS}(={one_of(['native', *dialect_names()])})?"


def one_of(words: Iterable[str]) -> str:
    return f"({'|'.join(word.replace('.', '[.]').replace('+', '[+]') for word in words)})"


# Kinds of text that have a form. What is in no list, such as the name of a namespace, may be anything.
_FORMS: Mapping[Callable[[str], Any], Callable[[], str]] = {
    store_address: lambda: _URL,
    page_address: lambda: _URL,
    base_address: lambda: _URL,
    api_server: lambda: "auto|off|https?://.*",
    absolute_path: lambda: r"/[-A-Za-z0-9._~!$&'()*+;=:@%/]*",
    network: lambda: _NETWORK,
    header_name: lambda: "[A-Za-z0-9-]+",
    listener: _listeners,
    Address.parse: lambda: f"{_ADDRESS}(=.+)?",
    family_name: lambda: r"[a-zA-Z_:*][a-zA-Z0-9_:*]*",
}


def of_option(option: Option[Any]) -> Schema:
    described: Schema = {"description": f"{option.help} Default: {option.default_text}"}
    if option.choices:
        return {**described, "enum": [*_words(option), None, ""]}
    if parser := bounded(option):
        return {**described, **_of_bounded(parser)}
    if option.parse is family_name:
        return {**described, **_of_families()}
    return {**described, **_of_text(option)}


def bounded(option: Option[Any]) -> ValueParser[Any] | None:
    return option.parse if isinstance(option.parse, ValueParser) and option.parse.most else None


def _words(option: Option[Any]) -> list[str | bool]:
    """YAML reads on and off as booleans, which the chart writes as words again."""
    synonyms = option.parse.synonyms if isinstance(option.parse, OneOf) else ()
    words = [*option.choices, *(word for word in synonyms if len(word) > 1)]
    return [*words, *(value for word, value in (("on", True), ("off", False)) if word in words)]


def _of_bounded(parser: ValueParser[Any]) -> Schema:
    least, most = parser(parser.least), parser(parser.most)
    whole = isinstance(least, int)
    units = "" if whole and parser.value_name == "NUMBER" else _UNITS[parser.value_name]
    return {
        "type": ["integer" if whole else "number", "string", "null"],
        "minimum": least,
        "maximum": most,
        "pattern": f"^([0-9]{{1,18}}{units})?$",
    }


def _of_families() -> Schema:
    """A dialect may have any name; podgpu's own are known."""
    item = {
        "type": "string",
        "anyOf": [
            {"enum": sorted(NAMES)},
            {"pattern": r"^[a-zA-Z_:]?[a-zA-Z0-9_:]*[*][a-zA-Z0-9_:*]*$"},
            {"not": {"pattern": "^podgpu_"}, "pattern": _whole(_FORMS[family_name]())},
        ],
    }
    names = _FORMS[family_name]()
    return {
        "type": ["array", "string", "null"],
        "items": item,
        "pattern": _whole(f"{names}(\\s*,\\s*{names})*"),
    }


def _of_text(option: Option[Any]) -> Schema:
    form = _FORMS[option.parse]() if option.parse in _FORMS else ""
    item: Schema = {"type": "string", **({"pattern": _whole(form)} if form else {})}
    if option.repeatable:
        commas = {"pattern": _whole(f"({form})(\\s*,\\s*({form}))*")} if form else {}
        return {"type": ["array", "string", "null"], "items": item, **commas}
    if option.parse is api_server:
        return {"anyOf": [{"enum": [False, None]}, item]}  # YAML reads off as a boolean
    kinds = ["string", "null"] if form else ["string", "number", "boolean", "null"]
    return {**item, "type": kinds}


def _whole(form: str) -> str:
    return f"^({form})?$"


def ranges(options: Iterable[Option[Any]]) -> str:
    """The bounds of options as they are written, for the templates."""
    found = {
        option.key: {"kind": parser.value_name, "least": parser.least, "most": parser.most}
        for option in options
        if (parser := bounded(option))
    }
    head = "# Made from podgpu's options by `make chart`. Do not edit.\n"
    return head + "".join(f"{key}: {json.dumps(found[key])}\n" for key in sorted(found))
