"""Certificates made by openssl, as a user would make them."""

import shutil
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_SANS = "subjectAltName=IP:127.0.0.1,DNS:localhost"
# Python 3.13 insists on these.
_SIGNS = "keyUsage=critical,keyCertSign,cRLSign"
_SIGNS_NOTHING = (
    "-addext",
    "basicConstraints=critical,CA:FALSE",
    "-addext",
    "keyUsage=critical,digitalSignature",
)


@dataclass(frozen=True)
class Pair:
    cert: Path
    key: Path


class Authority:
    """A certificate authority in a folder of its own."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        folder.mkdir(parents=True, exist_ok=True)
        self.pair = Pair(folder / f"{name}.crt", folder / f"{name}.key")
        self._openssl("-subj", f"/CN={name}", "-addext", _SIGNS, *self._files(self.pair))

    @property
    def cert(self) -> Path:
        return self.pair.cert

    def sign(self, name: str) -> Pair:
        pair = Pair(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        signer = ["-CA", str(self.pair.cert), "-CAkey", str(self.pair.key)]
        self._openssl("-subj", f"/CN={name}", "-addext", _SANS, *_SIGNS_NOTHING, *signer, *self._files(pair))
        return pair

    def client(self, pair: Pair | None = None) -> ssl.SSLContext:
        """Make the side that trusts this authority, and shows the certificate of the pair."""
        context = ssl.create_default_context(cafile=self.cert)
        if pair is not None:
            context.load_cert_chain(pair.cert, pair.key)
        return context

    @staticmethod
    def _files(pair: Pair) -> list[str]:
        return ["-keyout", str(pair.key), "-out", str(pair.cert)]

    @staticmethod
    def _openssl(*words: str) -> None:
        openssl = shutil.which("openssl")
        if openssl is None:
            import pytest  # benchmarks run where it is not installed

            pytest.skip("openssl is not installed")
        command = [openssl, "req", "-x509", *_KEY, "-days", "1", *words]
        subprocess.run(command, check=True, capture_output=True)


def web_config(folder: Path, pair: Pair, more: str = "") -> Path:
    """Write a file that serves the pair; `more` are further keys of the TLS section, or other sections."""
    path = folder / "web-config.yml"
    path.write_text(f"tls_server_config:\n  cert_file: {pair.cert}\n  key_file: {pair.key}\n{more}")
    return path
