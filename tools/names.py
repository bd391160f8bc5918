"""Checks the promise that names last: what the last release served is still there, or is in the table of renames."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from podgpu import catalog
from podgpu.catalog.renames import RENAMES, Rename
from podgpu.catalog.row import Stability

RELEASED = Path(__file__).resolve().parent / "released-names.txt"


class Promise(Struct, frozen=True):
    """A family as a release served it: a line of the list."""

    name: str
    kind: str
    stability: str
    labels: tuple[str, ...] = ()

    @classmethod
    def parse(cls, line: str) -> "Promise":
        name, kind, stability, *labels = line.split()
        return cls(name, kind, stability, tuple(labels[0].split(",")) if labels else ())

    def __str__(self) -> str:
        return " ".join(filter(None, (self.name, self.kind, self.stability, ",".join(self.labels))))

    @property
    def is_stable(self) -> bool:
        return self.stability == Stability.STABLE.value


def served() -> dict[str, Promise]:
    """Return what the catalog serves now, by name."""
    return {
        name: Promise(
            name,
            rows[0].kind.value,
            rows[0].stability.value,
            (*rows[0].scope.labels, *rows[0].label_names),
        )
        for name, rows in catalog.families().items()
    }


def released(path: Path = RELEASED) -> list[Promise]:
    return [Promise.parse(line) for line in path.read_text(encoding="utf-8").splitlines()]


def broken(
    promises: Sequence[Promise], now: Mapping[str, Promise], renames: Sequence[Rename] = RENAMES
) -> Iterator[str]:
    """Say which promises about stable names are broken, and how to keep them."""
    new_names = {rename.old: rename.new for rename in renames}
    for promise in promises:
        if promise.is_stable:
            yield from _broken(promise, new_names.get(promise.name, promise.name), now)
    for rename in renames:
        if rename.new not in now:
            yield f"{rename.old} was renamed to {rename.new}, which does not exist: correct catalog/renames.py"
        if rename.old in now:
            yield f"{rename.old} was renamed to {rename.new}, but is still in the catalog: remove one of them"


def _broken(promise: Promise, name: str, now: Mapping[str, Promise]) -> Iterator[str]:
    found = now.get(name)
    if found is None:
        yield f"{promise.name} is gone: bring it back, or name its successor in catalog/renames.py"
        return
    if not found.is_stable:
        yield f"{promise.name} was stable and is experimental now"
    if found.kind != promise.kind:
        yield f"{promise.name} was a {promise.kind} and is a {found.kind} now: give it another name"
    if lost := [label for label in promise.labels if label not in found.labels]:
        yield f"{promise.name} has lost its labels {', '.join(lost)}"


def main(arguments: Sequence[str], path: Path = RELEASED) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.names", description=__doc__)
    parser.add_argument("--release", action="store_true", help="write the list anew, for a release")
    lines = list(broken(released(path), served())) if path.exists() else []
    if parser.parse_args(arguments).release and not lines:
        path.write_text("".join(f"{promise}\n" for promise in served().values()), encoding="utf-8")
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
