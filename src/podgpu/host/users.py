"""Names of users, from the machine's own list. Users of a directory service are not in it."""

import re
from pathlib import Path

from podgpu.host.file import Parsed

FILE = "etc/passwd"

_MOST_BYTES = 2**22
_NUMBER = re.compile(r"[0-9]{1,10}")
# Not digits alone: that would look like another user's number.
_NAME = re.compile(r"(?![0-9]+$)[a-zA-Z0-9_.][a-zA-Z0-9_.@+$-]{0,63}")


class Users:
    def __init__(self, root: Path) -> None:
        self._file = Parsed(root / FILE, _MOST_BYTES, _names)

    def name(self, number: int) -> str:
        """Return the user's name, or the number if there is no name."""
        return self._file.get().get(number, str(number))


def _names(text: bytes) -> dict[int, str]:
    """If two users share a number, the first name counts, as everywhere on the system."""
    names: dict[int, str] = {}
    for line in text.decode("utf-8", "replace").split("\n"):
        fields = line.split(":")
        if len(fields) > 2 and _NAME.fullmatch(fields[0]) and _NUMBER.fullmatch(fields[2]):
            names.setdefault(int(fields[2]), fields[0])
    return names
