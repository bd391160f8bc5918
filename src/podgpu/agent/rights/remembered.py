"""What notes gave pods, kept in a file: whoever may edit a pod may strike its note out while the agent restarts.

The file is in a folder of the agent's own, where no tenant can write. Without a folder it is known for as long as the
agent runs.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from podgpu import log, sharing
from podgpu.model import Claim, Pod

FILE = "notes.json"
MOST_BYTES = 8 << 20
MOST_CLAIMS = sharing.MANY_CLAIMS
FORGET_SECONDS = 600.0  # after a pod was last listed: at the start, lists may come late

_decode = msgspec.json.Decoder(tuple[Claim, ...]).decode


class Remembered:
    """Claims by notes of pods that live, or may live."""

    def __init__(self, folder: Path | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = folder / FILE if folder else None
        self._clock = clock
        self._claims = _read(self._path) if self._path else ()
        self._seen_at = {claim.container.pod_uid: clock() for claim in self._claims}
        self._is_failing = False
        self.is_changed = False

    def before(self, last: tuple[Claim, ...]) -> tuple[Claim, ...]:
        """Return the last claims, and those of pods that had some before."""
        known = {claim.container.pod_uid for claim in last}
        return (*last, *(claim for claim in self._claims if claim.container.pod_uid not in known))

    def keep(self, claims: Iterable[Claim], pods: Iterable[Pod]) -> None:
        """Take the claims of now. Those of pods that are not listed stay for a while."""
        now = self._clock()
        ended = {pod.uid for pod in pods if pod.finished}
        self._seen_at |= {pod.uid: now for pod in pods}
        noted = {_key(one): one for one in claims if one.source == sharing.NOTED and one.container.pod_uid}
        present = {one.container.pod_uid for one in noted.values()}
        absent = {
            _key(one): one
            for one in self._claims
            if (uid := one.container.pod_uid) not in present
            and uid not in ended
            and now - self._seen_at.get(uid, 0.0) < FORGET_SECONDS
        }
        found = tuple((noted | absent).values())[:MOST_CLAIMS]
        kept = {one.container.pod_uid for one in found}
        self._seen_at = {uid: at for uid, at in self._seen_at.items() if uid in kept}
        self.is_changed = self.is_changed or (self._path is not None and found != self._claims)
        self._claims = found

    async def save(self) -> None:
        """Write the file, in a thread: a disk may be slow. It has a few KiB, and seldom changes."""
        if self._path is None:
            return
        self.is_changed = False
        try:
            await asyncio.to_thread(_write, self._path, msgspec.json.encode(self._claims))
        except OSError as error:
            if not self._is_failing:
                log.warning("what notes gave pods is not kept", path=self._path, reason=error.strerror)
            self._is_failing = True
        else:
            self._is_failing = False


def _write(path: Path, text: bytes) -> None:
    """Replace the file as a whole."""
    part = path.with_suffix(".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    part.write_bytes(text)
    part.chmod(0o600)
    part.replace(path)


def _key(claim: Claim) -> tuple[object, ...]:
    return claim.container, claim.gpu, claim.mig, claim.system, claim.index, claim.device_id


def _read(path: Path) -> tuple[Claim, ...]:
    """Read what the last agent kept; nothing, if there is no such file or it makes no sense."""
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
        found = _decode(text) if len(text) <= MOST_BYTES else ()
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, RecursionError) as error:
        log.warning("what notes gave pods cannot be read", path=path, reason=str(error)[:200])
        return ()
    return tuple(one for one in found if 0.0 <= one.share <= 1.0)[:MOST_CLAIMS]
