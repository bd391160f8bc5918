"""A file is read only as far as it is safe to read."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from podgpu.host.system_files import ParsedFile, read_limited


def test_a_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_limited(path, 5) == b"12345"
    assert read_limited(path, 4) is None


def test_what_is_no_regular_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", ".", "missing"):
        assert read_limited(tmp_path / name, 100) is None


def test_a_file_is_parsed_again_only_when_it_changed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    parsed: list[bytes] = []

    def parse(text: bytes) -> bytes:
        parsed.append(text)
        return text

    file = ParsedFile(path, 100, parse)
    assert file.get() == b""
    path.write_bytes(b"one")
    assert [file.get(), file.get()] == [b"one", b"one"]
    path.write_bytes(b"other")
    assert file.get() == b"other"
    path.unlink()
    assert file.get() == b""
    assert parsed == [b"", b"one", b"other", b""]


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read everything, so be somebody else for a while."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_file_that_may_not_be_read_is_none() -> None:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "file"
        path.write_bytes(b"secret")
        path.chmod(0)
        with as_nobody():
            assert read_limited(path, 100) is None
