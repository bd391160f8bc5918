"""Names of users, from the machine's own lists. Users of a directory service are not in them."""

import re
from bisect import bisect_right
from pathlib import Path

from podgpu.host.file import Parsed

FILE = "etc/passwd"
SUBORDINATE = "etc/subuid"

_MOST_BYTES = 2**22
_NUMBER = re.compile(r"[0-9]{1,10}")
# Not digits alone: that would look like another user's number.
_NAME = re.compile(r"(?![0-9]+$)[a-zA-Z0-9_.][a-zA-Z0-9_.@+$-]{0,63}")


_Range = tuple[int, int, str]  # the first number, the one after the last, and the owner as it is written


class Users:
    def __init__(self, root: Path) -> None:
        self._file = Parsed(root / FILE, _MOST_BYTES, _names)
        self._ranges = Parsed(root / SUBORDINATE, _MOST_BYTES, _subordinate)

    def name(self, number: int) -> str:
        """Return the user's name, or the number if there is no name.

        A number that was set aside for the containers of a user is that user, unless somebody has it himself.
        """
        names = self._file.get()
        if number in names:
            return names[number]
        owner = _owner(self._ranges.get(), number)
        if owner is None:
            return str(number)
        return names.get(int(owner), owner) if _NUMBER.fullmatch(owner) else owner


def _names(text: bytes) -> dict[int, str]:
    """If two users share a number, the first name counts, as everywhere on the system."""
    names: dict[int, str] = {}
    for line in text.decode("utf-8", "replace").split("\n"):
        fields = line.split(":")
        if len(fields) > 2 and _NAME.fullmatch(fields[0]) and _NUMBER.fullmatch(fields[2]):
            names.setdefault(int(fields[2]), fields[0])
    return names


def _subordinate(text: bytes) -> list[_Range]:
    """Return the ranges in order. Those that overlap prove nothing and are left out."""
    ranges: list[_Range] = []
    for line in text.decode("utf-8", "replace").split("\n"):
        fields = line.split(":")
        if len(fields) == 3 and all(_NUMBER.fullmatch(field) for field in fields[1:]):
            owner, first, count = fields[0], int(fields[1]), int(fields[2])
            if count and first and (_NAME.fullmatch(owner) or _NUMBER.fullmatch(owner)):
                ranges.append((first, first + count, owner))
    ranges.sort()
    return _undisputed(ranges)


def _undisputed(ranges: list[_Range]) -> list[_Range]:
    disputed: set[_Range] = set()
    longest: _Range = (0, 0, "")
    for one in ranges:
        if one[0] < longest[1] and one[2] != longest[2]:
            disputed |= {one, longest}
        longest = max(longest, one, key=lambda each: each[1])
    return [one for one in ranges if one not in disputed]


def _owner(ranges: list[_Range], number: int) -> str | None:
    at = bisect_right(ranges, (number + 1,)) - 1
    return ranges[at][2] if at >= 0 and ranges[at][0] <= number < ranges[at][1] else None
