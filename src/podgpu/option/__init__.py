"""How to declare an option. Every room may declare its own, and `config` collects them."""

from podgpu.option.declaration import (
    DIALECTS,
    GENERAL,
    GROUPS,
    KUBERNETES,
    LOG,
    SOURCE,
    STORE,
    TERMINAL,
    WEB,
    Environ,
    Option,
    OptionsOf,
    at_most_one,
    many,
    one,
    options_of,
)

__all__ = [
    "DIALECTS",
    "GENERAL",
    "GROUPS",
    "KUBERNETES",
    "LOG",
    "SOURCE",
    "STORE",
    "TERMINAL",
    "WEB",
    "Environ",
    "Option",
    "OptionsOf",
    "at_most_one",
    "many",
    "one",
    "options_of",
]
