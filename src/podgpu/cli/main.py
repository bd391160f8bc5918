"""The command line: finds the command, reads the options, prints errors as one line."""

import gc
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import PurePath

from podgpu import __version__
from podgpu.errors import UserError

MISTAKE = 2
INTERRUPTED = 130
STDERR = 2


def main(argv: Sequence[str] | None = None) -> int:
    gc.disable()  # what is loaded is no garbage, and looking for some takes a tenth of the time
    program = _program(sys.argv[0])
    _fill_standard_streams()
    if isinstance(sys.stdout, TextIOWrapper):  # do not fail on a character that the terminal lacks
        sys.stdout.reconfigure(errors="replace")
    try:
        code = _dispatch(program, list(sys.argv[1:] if argv is None else argv))
        print(end="", flush=True)
    except UserError as error:
        return _complain(program, str(error))
    except SystemExit as done:  # from argparse, after printing the help
        return int(done.code or 0)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _hang_up()
    except OSError as error:
        return _complain(program, f"{error.filename or 'the output'}: {error.strerror or error}")
    return code


def inspect() -> int:
    """Run as a plugin of kubectl that has this one command."""
    return main(["inspect", *sys.argv[1:]])


def _fill_standard_streams() -> None:
    """Open closed standard streams. A file opened later would otherwise get their number, and our output."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= STDERR:
        os.set_inheritable(descriptor, True)  # noqa: FBT003
    os.close(descriptor)
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode))


def _program(path: str) -> str:
    """Return the program's name as the user typed it. kubectl runs a plugin by its file name."""
    return "kubectl podgpu" if PurePath(path).name.startswith("kubectl-podgpu") else "podgpu"


def _dispatch(program: str, argv: list[str]) -> int:
    from podgpu.cli._commands import command_names, find_command, overview, parse
    from podgpu.option.value import did_you_mean

    name = argv[0] if argv else "--help"
    if name in ("-h", "--help", "help"):
        print(overview(program))
        return 0
    if name in ("-V", "--version", "version"):
        print(f"podgpu {__version__}")
        return 0
    if name.startswith("-"):
        raise UserError(f"{name} comes before the command; write {program} COMMAND {name}, see {program} --help")
    names = command_names()
    if name not in names:
        raise UserError(f"unknown command {name!r}; {did_you_mean(name, names, f'see {program} --help')}")
    command = find_command(name)
    flags, own = parse(f"{program} {name}", command, argv[1:])

    from podgpu import log
    from podgpu.cli._characters import choose_characters
    from podgpu.config.precedence import load

    choose_characters(own)
    config = load(flags, os.environ)
    log.configure(config.log_level, config.log_format)
    for old, new in config.outdated:
        log.warning("an option has a new name; the old one goes with the next minor version", old=old, new=new)
    for variable, advice in config.unknown:
        log.warning("an environment variable looks like an option, but is not", variable=variable, advice=advice)
    gc.enable()
    return command.run(config, own)


def _complain(program: str, message: str) -> int:
    """Print the message as one line, even if it quotes line breaks from the user's input."""
    line = "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in message)
    print(f"{program}: {line}", file=sys.stderr)
    return MISTAKE


def _hang_up() -> int:
    """End quietly when the reader of our output is gone: the interpreter's last flush must not fail either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
