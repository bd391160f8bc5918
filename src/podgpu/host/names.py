"""Names of containers: which are believed, and for how long."""

import re
from collections.abc import Callable

from msgspec import Struct

# A container can be renamed, and a name that could not be read may be readable later.
BELIEVED_SECONDS = 30.0
MOST_KNOWN = 4096

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}")
# A name like this would look like another container's short id.
_SHORT_ID = re.compile(r"[0-9a-f]{12}")


def believed(name: str) -> str | None:
    """Return the name if Docker or Podman could have given it."""
    return name if _NAME.fullmatch(name) and not _SHORT_ID.fullmatch(name) else None


class _KnownName(Struct, frozen=True):
    name: str | None
    read_at: float


class Names:
    """Remembers the name that `read` gives for an id, or that it gives none.

    A container that is being removed keeps its name for as long as it is asked for.
    """

    def __init__(self, read: Callable[[str], str | None], clock: Callable[[], float]) -> None:
        self._read = read
        self._clock = clock
        self._known: dict[str, _KnownName] = {}

    def get(self, container_id: str) -> str | None:
        now = self._clock()
        known = self._known.get(container_id)
        if known is None or now - known.read_at >= BELIEVED_SECONDS:
            known = _KnownName(self._read(container_id) or (known.name if known else None), now)
            self._keep(container_id, known)
        return known.name

    def _keep(self, container_id: str, known: _KnownName) -> None:
        self._known.pop(container_id, None)
        self._known[container_id] = known
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]
