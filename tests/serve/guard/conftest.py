from pathlib import Path

import pytest

from tests.serve.guard.certificates import Authority, Pair


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "authority")


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stranger"), "stranger")


@pytest.fixture
def server_pair(authority: Authority, tmp_path: Path) -> Pair:
    """A certificate of the server's own, which a test may change."""
    made = authority.sign("server")
    own = Pair(tmp_path / "tls.crt", tmp_path / "tls.key")
    own.cert.write_bytes(made.cert.read_bytes())
    own.key.write_bytes(made.key.read_bytes())
    return own
