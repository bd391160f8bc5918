"""The part of a lock that an image needs: what podgpu imports, or what builds its wheel."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

RUNTIME = "podgpu (pyproject.toml)"
# What podgpu needs, and the same with the tools that build, check and test it.
FILE, DEVELOPMENT_FILE = "requirements.lock", "requirements-dev.lock"
_HEAD = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==\S+")
_VIA = re.compile(r"\s+#\s+(?:via\s+)?(?P<parent>\S.*)")


@dataclass(frozen=True)
class Requirement:
    """One entry of the lock, with its hashes, and who asked for it."""

    name: str
    text: str
    parents: frozenset[str]


def requirements(lock: str) -> Iterator[Requirement]:
    for block in re.split(r"\n(?=[A-Za-z0-9])", lock.strip()):
        found = _HEAD.match(block)
        if not found:
            raise ValueError(f"not an entry of a lock with hashes: {block.splitlines()[0]!r}")
        lines = block.splitlines()
        parents = (_VIA.fullmatch(line) for line in lines)
        yield Requirement(
            name=found["name"],
            text="\n".join(line for line in lines if not line.lstrip().startswith("#")),
            parents=frozenset(match["parent"] for match in parents if match and match["parent"] != "via"),
        )


def needed(lock: str, *, for_build: bool = False) -> str:
    """Write the lock of the runtime, or of the tool that builds the wheel: entries and hashes alone."""
    every = list(requirements(lock))
    chosen = {each.name for each in every if _is_root(each, for_build=for_build)}
    while more := {each.name for each in every if each.parents & chosen} - chosen:
        chosen |= more
    return "".join(f"{each.text}\n" for each in every if each.name in chosen)


def _is_root(each: Requirement, *, for_build: bool) -> bool:
    return each.name == "hatchling" if for_build else RUNTIME in each.parents
