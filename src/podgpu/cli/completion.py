"""Completes what the user types in a shell. The scripts ask podgpu itself what fits."""

import re
import sys
from argparse import SUPPRESS, Action, ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from podgpu.config import OPTIONS as ALL
from podgpu.config import Config
from podgpu.model import Cluster
from podgpu.option.value import OneOf

HELP = "Complete commands, options and names of pods in your shell."
OPTIONS = ()

# In kubectl's protocol: complete no file names.
_NO_FILES = ":4"
# A shell waits for it, so names that take longer are left out.
DEADLINE_SECONDS = 1.5
# A namespace or node, or a pod after its namespace. A store or an agent may name others, which nobody can have made.
_PERMITTED = re.compile(r"(?:[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?/)?[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?")

BASH = """\
# podgpu completion for bash; load it with: source <(podgpu completion bash)
_podgpu() {
    local words current before found quoted
    # The line is cut at spaces alone: bash would cut at = and : too.
    read -ra words <<< "${COMP_LINE:0:COMP_POINT}"
    [[ "${COMP_LINE:COMP_POINT-1:1}" == " " ]] && words+=("")
    current="${words[${#words[@]}-1]}"
    before="${current%"${current##*[=:]}"}"
    COMPREPLY=()
    while IFS= read -r found; do
        # Bash puts it on the line as it is.
        printf -v quoted %q "${found#"$before"}"
        COMPREPLY+=("$quoted")
    done < <("${words[0]}" completion bash -- "${words[@]:1}" 2>/dev/null)
}
complete -F _podgpu podgpu kubectl-podgpu
"""

ZSH = """\
#compdef podgpu kubectl-podgpu
# podgpu completion for zsh; load it with: source <(podgpu completion zsh)
_podgpu() {
    local -a found
    found=("${(@f)$("${words[1]}" completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    compadd -- "${(@)found:#}"
}
compdef _podgpu podgpu kubectl-podgpu
"""

FISH = """\
# podgpu completion for fish; load it with: podgpu completion fish | source
function __podgpu_complete
    set -l words (commandline -opc)
    $words[1] completion fish -- $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c podgpu -f -a '(__podgpu_complete)'
complete -c kubectl-podgpu -f -a '(__podgpu_complete)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def arguments(parser: ArgumentParser) -> None:
    shells = tuple(SCRIPTS)
    parser.add_argument("shell", type=OneOf(shells), choices=shells, metavar="|".join(shells), help="for which shell")
    # The scripts give the words so far, to have the last of them completed.
    parser.add_argument("words", nargs="*", default=(), help=SUPPRESS)


def run(_: Config, arguments: Namespace) -> int:
    if arguments.words:
        _print(candidates(arguments.words))
    else:
        print(SCRIPTS[arguments.shell], end="")
    return 0


def kubectl() -> int:
    """Complete `kubectl podgpu`. kubectl runs the program `kubectl_complete-podgpu` with the words so far."""
    _print([*candidates(sys.argv[1:]), _NO_FILES])
    return 0


def _print(lines: Sequence[str]) -> None:
    print(*lines, sep="\n", end="\n" if lines else "")


def candidates(words: Sequence[str]) -> list[str]:
    """`words` are those after the program's name; the last is the one to complete, and may be empty."""
    from podgpu.cli._commands import build_parser, command_names, find_command

    *before, current = words or [""]
    if not before:
        return _fitting(command_names(), current)
    if before[0] not in command_names():
        return []
    parser = build_parser("podgpu", find_command(before[0]))
    flag, equals, value = current.partition("=")
    if current.startswith("-") and equals:
        return [f"{flag}={candidate}" for candidate in _fitting(_values(parser, flag, before), value)]
    if (action := _action(parser, before[-1])) and action.nargs != 0:
        return _fitting(_values(parser, before[-1], before), current)
    if current.startswith("-"):
        shown = [action for action in parser._actions if action.help != SUPPRESS]  # noqa: SLF001
        return _fitting([flag for action in shown for flag in action.option_strings], current)
    return _fitting(_positionals(parser, before), current)


def _fitting(found: Sequence[str], current: str) -> list[str]:
    return sorted({word for word in found if word.startswith(current)})


def _action(parser: ArgumentParser, flag: str) -> Action | None:
    return next((action for action in parser._actions if flag in action.option_strings), None)  # noqa: SLF001


def _values(parser: ArgumentParser, flag: str, before: Sequence[str]) -> Sequence[str]:
    """List what may follow a flag."""
    action = _action(parser, flag)
    if action is None:
        return ()
    if action.choices:
        return [str(choice) for choice in action.choices]
    if flag in _NAMES_OF:
        return _names(before, _NAMES_OF[flag])
    return next((option.choices for option in ALL.values() if option.flag == flag), ())


def _positionals(parser: ArgumentParser, before: Sequence[str]) -> Sequence[str]:
    """List what may stand without a flag: the words that the command knows, or the pods there are."""
    found = [action for action in parser._get_positional_actions() if action.choices]  # noqa: SLF001
    if found:
        return [str(choice) for choice in found[0].choices or ()]
    return _names(before, _pods) if before[0] == "why" else ()


def _names(before: Sequence[str], of: Callable[[Cluster], Sequence[str]]) -> Sequence[str]:
    """Ask the target that the flags so far name. Without an answer in time there are none: a shell shows no errors.

    Names that Kubernetes does not permit are left out: they would be put on the user's command line.
    """
    import os
    import threading

    from podgpu.cli._target import open_target
    from podgpu.config.precedence import load

    found: list[str] = []

    def look() -> None:
        with suppress(Exception), open_target(load(_target_flags(before), os.environ)) as target:
            found.extend(filter(_PERMITTED.fullmatch, of(target.cluster)))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(DEADLINE_SECONDS)
    return tuple(found)


def _target_flags(before: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Find the options among the words that name a target."""
    from podgpu.cli._target import TARGET_OPTIONS

    by_flag = {flag: name for name in TARGET_OPTIONS for flag in (ALL[name].flag, ALL[name].alias) if flag}
    found: dict[str, list[str]] = {}
    for word, following in zip(before, [*before[1:], ""], strict=True):
        flag, equals, value = word.partition("=")
        if flag in by_flag and (value or following):
            found.setdefault(by_flag[flag], []).append(value if equals else following)
    return found


def _pods(cluster: Cluster) -> Sequence[str]:
    from podgpu.views.why_evidence import pod_names

    return [name for node in cluster.nodes if node.snapshot for name in pod_names(node.snapshot)]


def _namespaces(cluster: Cluster) -> Sequence[str]:
    return [name.partition("/")[0] for name in _pods(cluster)]


_NAMES_OF: Mapping[str, Callable[[Cluster], Sequence[str]]] = {
    "-n": _namespaces,
    "--namespace": _namespaces,
    "--node": lambda cluster: [node.name for node in cluster.nodes],
}
