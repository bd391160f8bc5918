"""Logging in: tokens, passwords and certificates from files, against real sockets."""

import asyncio
import os
import ssl
from base64 import b64encode
from pathlib import Path

import pytest

from podgpu.net.connection import HttpFault
from podgpu.net.login import ClientCertificate, Login
from tests.fakeapi.certificate import certificate
from tests.net.rig import OK, client, fault_of, get, serving


async def test_a_name_and_a_password_in_the_address_are_sent_as_a_header() -> None:
    async with serving(OK) as server, client() as made:
        await get(made, server.url.replace("//", "//ada:love%20lace@"))
    assert f"Authorization: Basic {b64encode(b'ada:love lace').decode()}\r\n" in server.heads[0]
    assert "Host: 127.0.0.1:" in server.heads[0]


async def test_a_token_or_a_password_is_read_again_when_its_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("first\n")
    async with serving(OK) as server, client(Login(token_file=file)) as made:
        await get(made, server.url)
        file.write_text("second")
        await get(made, server.url)
        file.unlink()
        with pytest.raises(HttpFault) as caught:
            await get(made, server.url)
        assert caught.value.reason == "credential"
    assert ["Bearer first" in server.heads[0], "Bearer second" in server.heads[1]] == [True, True]
    file.write_text("ada:lovelace\n")
    assert Login(password_file=file).headers() == {"Authorization": f"Basic {b64encode(b'ada:lovelace').decode()}"}


@pytest.mark.parametrize("content", [b"", b" \n", b"a\nb", b"\xff\xfe", b"a\x00b"])
def test_a_file_without_a_secret_is_refused_and_not_repeated(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    for login in (Login(token_file=file), Login(password_file=file)):
        with pytest.raises(HttpFault) as caught:
            login.headers()
        assert caught.value.reason == "credential" and str(file) in caught.value.detail


async def test_certificates_are_checked_shown_and_read_again(tmp_path: Path) -> None:
    for name in ("server", "other"):
        (tmp_path / name).mkdir()
    cert, context = certificate(tmp_path / "server")
    other, _ = certificate(tmp_path / "other")
    context.load_verify_locations(cert)
    context.verify_mode = ssl.CERT_REQUIRED
    trusted = tmp_path / "ca.crt"
    trusted.write_bytes(other.read_bytes())
    shown = ClientCertificate(cert=cert, key=(tmp_path / "server" / "key.pem").read_text())
    login = Login(ca_file=trusted, client=shown)
    async with serving(OK, tls=context) as server:
        assert (await fault_of(server.url, login)).reason == "tls"
        trusted.write_text("no certificate")
        assert (await fault_of(server.url, login)).reason == "certificates"
        trusted.write_bytes(cert.read_bytes())
        async with client(login) as made:
            assert (await get(made, server.url)).body == b"ok"
            seen = server.connections
            await asyncio.sleep(0.01)
            trusted.write_bytes(cert.read_bytes() + b"\n")
            await get(made, server.url)
            assert server.connections == seen + 1  # the old one was secured by other files
        # Whether the alert arrives before the end of the connection is up to the network.
        assert (await fault_of(server.url, Login(ca_file=cert))).reason in ("tls", "unreachable")
        assert (await fault_of(server.url)).reason == "tls"
        wrong = Login(ca_file=cert, client=shown, server_name="elsewhere")
        assert "not valid for 'elsewhere'" in (await fault_of(server.url, wrong)).detail


def test_a_pipe_or_an_endless_file_in_place_of_a_certificate_holds_nothing_up(tmp_path: Path) -> None:
    cert, _ = certificate(tmp_path)
    key, pipe, long = tmp_path / "key.pem", tmp_path / "pipe", tmp_path / "long"
    os.mkfifo(pipe)
    with long.open("wb") as file:
        file.truncate(1 << 30)
    for wrong, reason in ((pipe, "not a regular file"), (long, "larger than 4 MiB")):
        logins = (
            Login(ca_file=wrong),
            Login(ca_file=cert, client=ClientCertificate(cert=wrong, key=key)),
            Login(ca_file=cert, client=ClientCertificate(cert=cert, key=wrong)),
        )
        for login in logins:
            with pytest.raises(HttpFault, match=reason) as caught:
                login.context()
            assert caught.value.reason == "certificates"
