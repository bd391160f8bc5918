"""The plugins for k9s: their form, and that podgpu understands what they type."""

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from podgpu.cli import _commands as commands

FILE = Path(__file__).parents[2] / "deploy" / "k9s" / "plugins.yaml"
PLUGINS: dict[str, dict[str, Any]] = yaml.safe_load(FILE.read_text())["plugins"]
REQUIRED = {"shortCut", "description", "scopes", "command"}
CHOSEN = {"NAMESPACE": "search", "NAME": "score-0", "CONTEXT": "staging"}


def typed(plugin: dict[str, Any]) -> list[str]:
    """What is typed after `kubectl podgpu` for the row that was chosen."""
    words = " ".join(plugin["args"])
    for name in sorted(CHOSEN, key=len, reverse=True):
        words = words.replace(f"${name}", CHOSEN[name])
    after = words[words.index("podgpu ") :].partition(" 2>&1")[0]
    return shlex.split(after)[1:]


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_asks_for_what_was_chosen(name: str) -> None:
    plugin = PLUGINS[name]
    command, *rest = typed(plugin)
    flags, own = commands.parse(f"kubectl podgpu {command}", commands.find_command(command), rest)
    assert plugin.keys() >= REQUIRED
    assert {"search/score-0", "score-0"} & {value for value in vars(own).values() if isinstance(value, str)}
    assert flags["kube_context"] == ["staging"]


def test_no_two_plugins_want_the_same_key_on_the_same_list() -> None:
    keys = [(scope, plugin["shortCut"]) for plugin in PLUGINS.values() for scope in plugin["scopes"]]
    assert len(keys) == len(set(keys))
