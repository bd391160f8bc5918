"""Collects all options: the core's, those of sources and dialects, the cluster's, the store's and the terminal's."""

from collections.abc import Iterable
from typing import Any

from podgpu.cluster.login_options import LoginOptions
from podgpu.cluster.store.options import StoreOptions
from podgpu.config.cluster import ClusterOptions
from podgpu.config.fields import Config
from podgpu.config.price import PriceOptions
from podgpu.config.terminal import Terminal
from podgpu.option import GROUPS, Option, options_of
from podgpu.sources import registry
from podgpu.views.dialects import dialects


def _sections() -> tuple[type, ...]:
    """List each class of options once, since several dialects may share a class."""
    declared = [section for one in registry.entries().values() for section in one.sections]
    declared += [dialect.options for dialect in dialects() if dialect.options]
    others = [ClusterOptions, LoginOptions, StoreOptions, PriceOptions, Terminal]
    return tuple(dict.fromkeys([*declared, *others]))


def collected(sections: Iterable[type]) -> dict[str, Option[Any]]:
    """Return the options by their Python names, sorted by group and then in the order of declaration."""
    found: dict[str, Option[Any]] = {}
    for option in (option for section in sections for option in options_of(section).values()):
        if option.name in found:
            raise ValueError(f"two options are called {option.flag}; give one of them another flag")
        found[option.name] = option
    return dict(sorted(found.items(), key=lambda item: GROUPS.index(item[1].group)))


SECTIONS = _sections()
OPTIONS = collected((Config, *SECTIONS))
