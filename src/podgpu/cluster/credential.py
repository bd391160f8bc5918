"""A token, or a user with a password, in a file. Secrets come from files alone, and show in no message."""

from base64 import b64encode
from ipaddress import ip_address
from pathlib import Path

from podgpu.errors import UserError

_LONGEST_FILE = 64 << 10

Version = tuple[int, int, int]


class Credential:
    """What opens a server. The file is read again when it has changed: tokens of Kubernetes do so every hour."""

    def __init__(self, token_file: Path | None, password_file: Path | None) -> None:
        self._file = token_file or password_file
        self._is_token = token_file is not None
        self._made: tuple[Version, str] | None = None

    @property
    def is_given(self) -> bool:
        return self._file is not None

    def headers(self) -> dict[str, str]:
        """Return the headers to send. Raises UserError."""
        return {"Authorization": self._value(self._file)} if self._file else {}

    def _value(self, path: Path) -> str:
        try:
            found = path.stat()
        except OSError as error:
            raise UserError(f"cannot read {path} ({type(error).__name__}); give a file that exists") from None
        version = found.st_mtime_ns, found.st_ino, found.st_size
        if self._made is None or self._made[0] != version:
            self._made = version, self._read(path)
        return self._made[1]

    def _read(self, path: Path) -> str:
        wanted = "a token" if self._is_token else "USER:PASSWORD"
        line = text_of(path).strip()
        if not line or not line.isprintable() or not (self._is_token or ":" in line):
            raise UserError(f"{path} does not hold {wanted}; write it in one line")
        return f"Bearer {line}" if self._is_token else f"Basic {b64encode(line.encode()).decode()}"


def text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_LONGEST_FILE).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path} ({type(error).__name__}); give a text file") from None


def is_loopback(host: str) -> bool:
    """Whether what is sent there stays on this machine."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
