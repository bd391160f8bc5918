"""Claims by annotations that outlive the agent: what a pod had by one, it keeps if somebody removes it."""

import asyncio
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from podgpu import log, sharing
from podgpu.host.system_files import read_limited
from podgpu.model import Claim, Pod
from podgpu.sharing.floors import ANNOTATION

FILE = "notes.json"
MAX_BYTES = 8 << 20
MAX_CLAIMS = sharing.MANY_CLAIMS
FORGET_SECONDS = 600.0  # after a pod was last listed: at the start, lists may come late

_decode = msgspec.json.Decoder(tuple[Claim, ...]).decode


class RememberedClaims:
    """Claims by annotations of pods that live, or may live, kept in a file.

    A user who may edit a pod may remove its annotation while the agent restarts. The file is in a folder of the agent's
    own, where no tenant can write. Without a folder claims are remembered for as long as the agent runs.
    """

    def __init__(self, folder: Path | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = folder / FILE if folder else None
        self._clock = clock
        self._claims = _read(self._path) if self._path else ()
        self._seen_at = {claim.container.pod_uid: clock() for claim in self._claims}
        self._is_failing = False
        self.is_changed = False

    def before(self, last: tuple[Claim, ...]) -> tuple[Claim, ...]:
        """Return the last claims, and the remembered ones of pods that have none of that system among them."""
        known = {(claim.container.pod_uid, claim.system) for claim in last}
        return (*last, *(claim for claim in self._claims if (claim.container.pod_uid, claim.system) not in known))

    def keep(self, claims: Iterable[Claim], pods: Iterable[Pod]) -> None:
        """Remember these claims, and for a while those of pods that are not listed."""
        now = self._clock()
        ended = {pod.uid for pod in pods if pod.finished}
        self._seen_at |= {pod.uid: now for pod in pods}
        present = {_key(claim): claim for claim in claims if claim.source == ANNOTATION and claim.container.pod_uid}
        replaced = {(claim.container.pod_uid, claim.system) for claim in present.values()}
        absent = {
            _key(claim): claim
            for claim in self._claims
            if (uid := claim.container.pod_uid) not in ended
            and (uid, claim.system) not in replaced
            and now - self._seen_at.get(uid, 0.0) < FORGET_SECONDS
        }
        found = tuple((present | absent).values())[:MAX_CLAIMS]
        kept = {claim.container.pod_uid for claim in found}
        self._seen_at = {uid: at for uid, at in self._seen_at.items() if uid in kept}
        self.is_changed = self.is_changed or (self._path is not None and found != self._claims)
        self._claims = found

    async def save(self) -> None:
        """Write the file, in a thread: a disk may be slow. It has a few KiB, and rarely changes."""
        if self._path is None:
            return
        self.is_changed = False
        try:
            await asyncio.to_thread(_write, self._path, msgspec.json.encode(self._claims))
        except OSError as error:
            if not self._is_failing:
                log.warning(
                    "claims by annotations are not saved; check the folder", path=self._path, reason=error.strerror
                )
            self._is_failing = True
        else:
            self._is_failing = False


def _write(path: Path, text: bytes) -> None:
    """Replace the file as a whole. What has the name of its part is removed: it may be a pipe, or lead elsewhere."""
    part = path.with_suffix(".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(text)
    part.replace(path)


def _key(claim: Claim) -> tuple[object, ...]:
    return claim.container, claim.gpu, claim.mig, claim.system, claim.index, claim.device_id


def _read(path: Path) -> tuple[Claim, ...]:
    """Read what the last agent kept; nothing, if there is no such file or it makes no sense."""
    text = read_limited(path, MAX_BYTES)
    if text is None and not os.path.lexists(path):
        return ()
    try:
        found = _decode(text or b"")
    except (ValueError, RecursionError) as error:
        reason = "not a file that can be read, or too large" if text is None else str(error)[:200]
        log.warning("saved claims by annotations cannot be read", path=path, reason=reason)
        return ()
    return tuple(claim for claim in found if 0.0 <= claim.share <= 1.0)[:MAX_CLAIMS]
