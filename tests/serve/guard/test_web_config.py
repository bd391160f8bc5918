"""What the file may hold, and what is said about the rest."""

from pathlib import Path

import pytest

from podgpu.errors import UserError
from podgpu.serve.guard.web_config import WebConfig, read
from tests.serve.rig import StubNode, fetch, serving

HASH = "$2b$10$8ujyyih2ljkFTxUSh4U8pOL5CsN.xVqs1gJeGMSQ6CsaXJg7eLi8m"
PAIR = "cert_file: a.crt, key_file: a.key"


def file(folder: Path, text: str) -> Path:
    path = folder / "web-config.yml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("text", ["", "# nothing\n", "tls_server_config:\nbasic_auth_users: {}\n"])
def test_an_empty_file_asks_for_nothing(tmp_path: Path, text: str) -> None:
    assert read(file(tmp_path, text)) == WebConfig()


def test_everything_is_read(tmp_path: Path) -> None:
    found = read(
        file(
            tmp_path,
            f"""
tls_server_config:
  cert_file: a.crt
  key_file: /etc/a.key
  client_auth_type: VerifyClientCertIfGiven
  client_ca_file: ca.crt
  min_version: TLS12
  max_version: TLS12
  cipher_suites:
    - TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
http_server_config:
  http2: false
  headers:
    Strict-Transport-Security: max-age=31536000
basic_auth_users:
  alice: {HASH}
""",
        )
    )
    assert found.tls
    assert found.tls.files == (tmp_path / "a.crt", Path("/etc/a.key"), tmp_path / "ca.crt")
    assert (found.tls.min_version, found.tls.max_version) == ("TLS12", "TLS12")
    assert found.tls.cipher_suites == ("ECDHE-RSA-AES128-GCM-SHA256",)
    assert not found.tls.needs_certificate
    assert found.headers == {"Strict-Transport-Security": "max-age=31536000"}
    assert found.users == {"alice": HASH.encode()}
    assert HASH not in repr(found)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tls_server_conf: {}", ("unknown key 'tls_server_conf'", "did you mean tls_server_config?")),
        (
            "rate_limit: {}",
            ("unknown key 'rate_limit'", "podgpu knows tls_server_config, http_server_config"),
        ),
        ("- a", ("must hold keys and values",)),
        ("words", ("must hold keys and values",)),
        ("tls_server_config: x", ("tls_server_config must hold keys and values",)),
        ('tls_server_config: {cert_file: "a\\0", key_file: b}', ("line 1: a value must not contain NUL",)),
        ("tls_server_config: {cert_file: a.crt}", ("give both cert_file and key_file",)),
        (
            "tls_server_config: {cert_file: [a], key_file: b}",
            ("tls_server_config.cert_file: write one value",),
        ),
        (
            f"tls_server_config: {{{PAIR}, cert_fil: x}}",
            ("tls_server_config.cert_fil", "did you mean cert_file?"),
        ),
        (
            f"tls_server_config: {{{PAIR}, curve_preferences: [X25519]}}",
            ("unknown key", "podgpu knows cert_file"),
        ),
        (f"tls_server_config: {{{PAIR}, client_auth_type: RequireAndVerifyCert}}", ("did you mean",)),
        (f"tls_server_config: {{{PAIR}, client_auth_type: xyz}}", ("write NoClientCert, Verify",)),
        (
            f"tls_server_config: {{{PAIR}, client_auth_type: RequireAnyClientCert}}",
            ("write RequireAndVerifyClientCert",),
        ),
        (
            f"tls_server_config: {{{PAIR}, client_ca_file: ca}}",
            ("client_auth_type", "client_ca_file together"),
        ),
        (f"tls_server_config: {{{PAIR}, client_auth_type: RequireAndVerifyClientCert}}", ("client_ca_file",)),
        (f"tls_server_config: {{{PAIR}, min_version: TLS10}}", ("min_version", "write TLS12 or TLS13")),
        (f"tls_server_config: {{{PAIR}, min_version: TLS13, max_version: TLS12}}", ("above max_version",)),
        (f"tls_server_config: {{{PAIR}, cipher_suites: X}}", ("cipher_suites: write a list",)),
        (
            f"tls_server_config: {{{PAIR}, cipher_suites: [X]}}",
            ("unknown suite 'X'", "choose among TLS_ECDHE"),
        ),
        ("http_server_config: {http2: true}", ("http2: podgpu speaks HTTP/1.1",)),
        ("http_server_config: {http2: x}", ("write true or false",)),
        ("http_server_config: {headers: {X-Mine: a}}", ("unknown key", "podgpu knows Content-Security")),
        ('http_server_config: {headers: {X-Frame-Options: "a\\r\\nb"}}', ("printable",)),
        ("basic_auth_users: [alice]", ("basic_auth_users must hold keys and values",)),
        ("basic_auth_users: {alice: hunter2}", ("basic_auth_users.alice", "htpasswd -nBC 10 alice")),
        ("basic_auth_users: {alice: [hunter2]}", ("not a bcrypt hash",)),
        (f"basic_auth_users: {{alice: {HASH.replace('$10$', '$31$')}}}", ("from 4 to 16",)),
        (f'basic_auth_users: {{"a:b": {HASH}}}', ("no colon",)),
        (f"basic_auth_users: {{alice: {HASH}, alice: {HASH}}}", ("'alice' appears twice",)),
        ("basic_auth_users: {alice: hunter2", ("not valid YAML",)),
    ],
)
def test_a_mistake_says_where_it_is_and_what_to_write(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    with pytest.raises(UserError) as caught:
        read(file(tmp_path, text))
    message = str(caught.value)
    assert "web-config.yml" in message
    assert all(word in message for word in words), message
    assert "hunter2" not in message
    assert HASH[8:] not in message
    assert "\n" not in message


async def test_headers_are_sent_with_every_page(tmp_path: Path) -> None:
    from podgpu.serve.guard.guard import Guard

    text = "http_server_config: {headers: {X-Frame-Options: SAMEORIGIN, X-XSS-Protection: '0'}}"
    async with serving(StubNode(), guard=Guard(file(tmp_path, text))) as server:
        for path in ("/metrics", "/-/healthy", "/nowhere"):
            answer = await fetch(server, path)
            assert answer.headers["x-frame-options"] == "SAMEORIGIN"
            assert answer.headers["x-xss-protection"] == "0"
            assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_file_that_would_keep_probes_waiting_is_refused(tmp_path: Path) -> None:
    path = file(tmp_path, "# a comment\n" * 6000)
    with pytest.raises(UserError, match="larger than 64 KiB"):
        read(path)
