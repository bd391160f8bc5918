"""Certificates made on the spot, each its own authority."""

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest


def certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """Return a certificate for 127.0.0.1 and a server's context with it. Its key is key.pem beside it."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    cert, key = folder / "ca.crt", folder / "key.pem"
    words = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"]
    # Some clients take no authority for a server.
    names = ["-subj", "/CN=api", "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=CA:FALSE"]
    files = ["-keyout", str(key), "-out", str(cert)]
    subprocess.run([openssl, "req", "-x509", *words, *names, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return cert, context
