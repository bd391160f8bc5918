import sys
from argparse import SUPPRESS, ArgumentParser, Namespace

from podgpu.config import Config

HELP = "Complete commands, options and names of pods in your shell."
OPTIONS = ()

SHELLS = ("bash", "zsh", "fish")
# In kubectl's protocol: complete no file names.
_NO_FILES = ":4"


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, metavar="|".join(SHELLS), help="for which shell")
    # The scripts give the words so far, to have the last of them completed.
    parser.add_argument("words", nargs="*", help=SUPPRESS)


def run(_: Config, arguments: Namespace) -> int:
    from podgpu.cli._complete.scripts import SCRIPTS

    if arguments.words:
        _print(arguments.words)
    else:
        print(SCRIPTS[arguments.shell], end="")
    return 0


def kubectl() -> int:
    """Complete `kubectl podgpu`. kubectl runs the program `kubectl_complete-podgpu` with the words so far."""
    _print(sys.argv[1:])
    print(_NO_FILES)
    return 0


def _print(words: list[str]) -> None:
    from podgpu.cli._complete.candidates import candidates

    for one in candidates(words):
        print(one)
