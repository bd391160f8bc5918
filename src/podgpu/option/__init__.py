"""How to declare an option. Every room may declare its own, and `config` collects them."""

from podgpu.option.declaration import (
    CLUSTER,
    DIALECTS,
    GENERAL,
    GROUPS,
    KUBERNETES,
    LOG,
    SOURCE,
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
    "CLUSTER",
    "DIALECTS",
    "GENERAL",
    "GROUPS",
    "KUBERNETES",
    "LOG",
    "SOURCE",
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
