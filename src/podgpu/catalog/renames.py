"""Families that got another name. The old one is served beside the new one until the next minor version."""

import re

from msgspec import Struct


class Rename(Struct, frozen=True):
    """`since` is the version that brought the new name, such as `0.2`. A MIG twin needs a row of its own."""

    old: str
    new: str
    since: str

    @property
    def until(self) -> str:
        """The version in which the old name is gone."""
        major, minor = minor_version(self.since)
        return f"{major}.{minor + 1}"


# A released name must not go without a row here: tools/names.py checks it. A row may go once the list of released
# names no longer has its old name.
RENAMES: tuple[Rename, ...] = ()


def in_force(version: str, renames: tuple[Rename, ...] = RENAMES) -> tuple[Rename, ...]:
    """List the renames whose old names this version still serves."""
    return tuple(rename for rename in renames if minor_version(version) <= minor_version(rename.since))


def minor_version(version: str) -> tuple[int, int]:
    """Return major and minor number. What is no version counts as older than all."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)
