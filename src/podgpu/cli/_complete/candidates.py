"""What fits at the end of a command line that is still being typed."""

import os
import threading
from argparse import SUPPRESS, Action, ArgumentParser
from collections.abc import Callable, Mapping, Sequence

from podgpu.cli._commands import build_parser, command_names, find_command
from podgpu.cli._view import LOOKING, open_view
from podgpu.config import OPTIONS
from podgpu.config.precedence import load
from podgpu.model import Cluster

# A shell waits for it, so names that take longer are left out.
DEADLINE_SECONDS = 1.5


def candidates(words: Sequence[str]) -> list[str]:
    """`words` are those after the program's name; the last is the one to complete, and may be empty."""
    *before, current = words or [""]
    if not before:
        return _fitting(command_names(), current)
    if before[0] not in command_names():
        return []
    parser = build_parser("podgpu", find_command(before[0]))
    flag, equals, value = current.partition("=")
    if current.startswith("-") and equals:
        return [f"{flag}={one}" for one in _fitting(_values(parser, flag, before), value)]
    if (action := _action(parser, before[-1])) and action.nargs != 0:
        return _fitting(_values(parser, before[-1], before), current)
    if current.startswith("-"):
        shown = [one for one in parser._actions if one.help != SUPPRESS]  # noqa: SLF001
        return _fitting([flag for one in shown for flag in one.option_strings], current)
    return _fitting(_arguments(parser, before), current)


def _fitting(found: Sequence[str], current: str) -> list[str]:
    return sorted({one for one in found if one.startswith(current)})


def _action(parser: ArgumentParser, flag: str) -> Action | None:
    return next((one for one in parser._actions if flag in one.option_strings), None)  # noqa: SLF001


def _values(parser: ArgumentParser, flag: str, before: Sequence[str]) -> Sequence[str]:
    """What may follow a flag."""
    action = _action(parser, flag)
    if action is None:
        return ()
    if action.choices:
        return [str(one) for one in action.choices]
    if flag in _NAMED:
        return _names(before, _NAMED[flag])
    return next((one.choices for one in OPTIONS.values() if one.flag == flag), ())


def _arguments(parser: ArgumentParser, before: Sequence[str]) -> Sequence[str]:
    """What may stand without a flag: the words that the command knows, or the pods there are."""
    found = [one for one in parser._get_positional_actions() if one.choices]  # noqa: SLF001
    if found:
        return [str(one) for one in found[0].choices or ()]
    return _names(before, _pods) if before[0] in _OF_PODS else ()


def _names(before: Sequence[str], of: Callable[[Cluster], Sequence[str]]) -> Sequence[str]:
    """Ask whoever the flags so far name. Without an answer in time there are none: a shell shows no errors."""
    found: list[Sequence[str]] = []

    def look() -> None:
        view = open_view(load(_flags(before), os.environ))
        try:
            found.append(of(view.cluster))
        finally:
            view.close()

    def try_to() -> None:
        try:
            look()
        except Exception:
            found.append(())

    thread = threading.Thread(target=try_to, daemon=True)
    thread.start()
    thread.join(DEADLINE_SECONDS)
    return found[0] if found else ()


def _flags(before: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Find the options among the words that say what to look at."""
    by_flag = {flag: name for name in LOOKING for flag in (OPTIONS[name].flag, OPTIONS[name].alias) if flag}
    found: dict[str, list[str]] = {}
    for word, following in zip(before, [*before[1:], ""], strict=True):
        flag, equals, value = word.partition("=")
        if flag in by_flag and (value or following):
            found.setdefault(by_flag[flag], []).append(value if equals else following)
    return found


def _pods(cluster: Cluster) -> Sequence[str]:
    from podgpu.views.why import pod_names

    return [name for node in cluster.nodes if node.snapshot for name in pod_names(node.snapshot)]


def _namespaces(cluster: Cluster) -> Sequence[str]:
    return [name.partition("/")[0] for name in _pods(cluster)]


def _nodes(cluster: Cluster) -> Sequence[str]:
    return [node.name for node in cluster.nodes]


_NAMED = {"-n": _namespaces, "--namespace": _namespaces, "--node": _nodes}
_OF_PODS = ("why",)
