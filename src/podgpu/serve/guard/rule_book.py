"""The rules in force, and their renewal while the server runs."""

from collections.abc import Sequence
from pathlib import Path

from podgpu import log
from podgpu.errors import UserError
from podgpu.serve.guard import web_config
from podgpu.serve.guard.rules import Rules

# What changes with the content of a file, also behind the links of a Kubernetes volume. None without a file.
Mark = tuple[int, int, int, int] | None


class RuleBook:
    """Reads the file and those it names again when they have changed. Without a file there are no rules."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._files: Sequence[Path] = ()
        self._tried: Sequence[Mark] = ()
        self._seen: Sequence[Mark] = ()
        self.rules = Rules() if path is None else self._read(path)
        self._tried = self._seen = self._marks()

    def look(self) -> bool:
        """Renew the rules, and say whether they are others now.

        Files that changed since the last look may still be in the midst of it: they can wait.
        """
        marks, before, old = self._marks(), self._seen, self.rules
        self._seen = marks
        if self._path is None or marks == self._tried or marks != before:
            return False
        try:
            self.rules = _no_weaker(self._read(self._path), self.rules)
            log.info("the web configuration has been read again", path=str(self._path))
        except UserError as error:
            log.error(
                "the changed web configuration is refused; the one before stays in force", reason=str(error)
            )
        self._tried = self._seen = self._marks()
        return self.rules is not old

    def _read(self, path: Path) -> Rules:
        self._files = (path, *self._files[1:])
        config = web_config.read(path)
        # Also when they turn out to be wrong: the user will correct them.
        self._files = (path, *(config.tls.files if config.tls else ()))
        return Rules.of(config)

    def _marks(self) -> Sequence[Mark]:
        return [_mark(path) for path in self._files]


def _no_weaker(new: Rules, old: Rules) -> Rules:
    """Refuse to open what was closed: a file that was emptied by mistake looks the same."""
    lost = [
        name
        for name, before, now in (
            ("TLS", old.context, new.context),
            ("client certificates", old.needs_certificate, new.needs_certificate),
            ("passwords", old.users, new.users),
        )
        if before and not now
    ]
    if lost:
        raise UserError(f"it no longer asks for {' and '.join(lost)}; restart the agent if that is intended")
    return new


def _mark(path: Path) -> Mark:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
