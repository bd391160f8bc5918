"""A kubeconfig over a real TLS server, and what is said about one that cannot be used."""

import base64
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from podgpu.errors import UserError
from podgpu.kube.api import ApiAccount, ApiFault, ApiServer
from podgpu.kube.api.kubeconfig import account
from tests.fakeapi.certificate import certificate
from tests.fakeapi.server import FakeApi

CONTEXT = {"name": "prod", "context": {"cluster": "c", "user": "u"}}


def written(path: Path, cluster: dict[str, Any], user: dict[str, Any], **more: Any) -> Path:
    document = {
        "current-context": "prod",
        "contexts": [CONTEXT],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        **more,
    }
    path.write_text(yaml.safe_dump(document))
    return path


def config(folder: Path, user: dict[str, Any] | None = None, /, **cluster: Any) -> ApiAccount:
    return account(written(folder / "config", {"server": "https://h:1", **cluster}, user or {}))


def data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def locked(key: Path, target: Path) -> None:
    words = ["ec", "-in", str(key), "-aes256", "-passout", "pass:hunter2", "-out", str(target)]
    subprocess.run(["openssl", *words], check=True, capture_output=True)


async def asked(found: ApiAccount) -> object:
    api = ApiServer(found.url, found.login)
    try:
        return await api.get("/thing", dict)
    finally:
        await api.close()


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path, ssl.SSLContext]:
    """A certificate that is the server's and the client's, its key, and a server that demands it."""
    cert, context = certificate(tmp_path)
    context.load_verify_locations(cert)
    context.verify_mode = ssl.CERT_REQUIRED
    return cert, tmp_path / "key.pem", context


@pytest.mark.parametrize("inline", [True, False])
async def test_token_authority_and_client_certificate_are_used(
    tmp_path: Path, pair: tuple[Path, Path, ssl.SSLContext], *, inline: bool
) -> None:
    cert, key, context = pair
    (tmp_path / "token").write_text("secret\n")
    async with FakeApi(objects={"/thing": {"a": 1}}, tls=context, token="secret") as fake:
        if inline:
            cluster = {"server": fake.url, "certificate-authority-data": data(cert)}
            user = {"token": "secret", "client-certificate-data": data(cert), "client-key-data": data(key)}
        else:  # relative to the kubeconfig
            cluster = {"server": fake.url, "certificate-authority": "ca.crt"}
            user = {"tokenFile": "token", "client-certificate": "ca.crt", "client-key": "key.pem"}
        assert await asked(account(written(tmp_path / "config", cluster, user))) == {"a": 1}


async def test_without_its_certificate_a_client_is_turned_away(
    tmp_path: Path, pair: tuple[Path, Path, ssl.SSLContext]
) -> None:
    cert, _, context = pair
    async with FakeApi(objects={"/thing": {}}, tls=context) as fake:
        with pytest.raises(ApiFault):
            await asked(config(tmp_path, server=fake.url, **{"certificate-authority-data": data(cert)}))


async def test_a_server_of_another_authority_gets_no_token(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    _, context = certificate(tmp_path / "one")
    other, _ = certificate(tmp_path / "two")
    async with FakeApi(objects={"/thing": {}}, tls=context) as fake:
        cluster = {"server": fake.url, "certificate-authority": str(other)}
        with pytest.raises(ApiFault, match="tls"):
            await asked(config(tmp_path, {"token": "secret"}, **cluster))
        assert fake.requests == []


async def test_a_renewed_client_certificate_is_used(tmp_path: Path, pair: tuple[Path, Path, ssl.SSLContext]) -> None:
    cert, key, context = pair
    mine = tmp_path / "mine"
    mine.mkdir()
    certificate(mine)  # one that the server does not know
    async with FakeApi(objects={"/thing": {}}, tls=context) as fake:
        cluster = {"server": fake.url, "certificate-authority": str(cert)}
        user = {"client-certificate": str(mine / "ca.crt"), "client-key": str(mine / "key.pem")}
        found = config(tmp_path, user, **cluster)
        api = ApiServer(found.url, found.login)
        with pytest.raises(ApiFault):
            await api.get("/thing", dict)
        (mine / "ca.crt").write_bytes(cert.read_bytes())
        (mine / "key.pem").write_bytes(key.read_bytes())
        assert await api.get("/thing", dict) == {}
        await api.close()


async def test_an_encrypted_key_is_a_fault_and_no_question_on_the_terminal(tmp_path: Path) -> None:
    cert, _ = certificate(tmp_path)
    locked(tmp_path / "key.pem", tmp_path / "locked.pem")
    user = {"client-certificate": str(cert), "client-key": "locked.pem"}
    with pytest.raises(ApiFault, match=r"tls.*cannot use .*locked\.pem"):
        await asked(config(tmp_path, user))


async def test_a_key_that_does_not_fit_is_a_fault_and_shows_nothing_of_it(tmp_path: Path) -> None:
    user = {"client-certificate-data": "bm9uc2Vuc2U=", "client-key-data": "aHVudGVyMg=="}
    with pytest.raises(ApiFault, match="cannot use the certificates of the kubeconfig") as caught:
        await asked(config(tmp_path, user))
    assert "hunter2" not in str(caught.value)


def test_the_context_chooses_cluster_and_user(tmp_path: Path) -> None:
    path = written(
        tmp_path / "config",
        {"server": "https://h:1"},
        {"token": "one"},
        contexts=[CONTEXT, {"name": "dev", "context": {"cluster": "d", "user": ""}}],
        clusters=[
            {"name": "c", "cluster": {"server": "https://h:1"}},
            {"name": "d", "cluster": {"server": "https://h:2"}},
        ],
    )
    assert (account(path).url, account(path).login.token) == ("https://h:1", "one")
    assert (account(path, "dev").url, account(path, "dev").login.token) == ("https://h:2", "")
    with pytest.raises(UserError, match="has no context 'test'; it has prod, dev"):
        account(path, "test")


def test_a_token_file_wins_over_a_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    found = config(tmp_path, {"token": "other", "tokenFile": "token"})
    assert (found.login.token, found.login.token_file) == ("", tmp_path / "token")


@pytest.mark.parametrize(
    ("user", "message"),
    [
        (
            {"exec": {"command": "aws"}},
            "exec is not supported: podgpu runs no other programs; make a service",
        ),
        ({"auth-provider": {"name": "gcp"}}, "auth-provider is not supported: .*; make a service account"),
        ({"username": "admin", "password": "p"}, "username is not supported"),
        ({"as": "root"}, "as is not supported"),
        ({"client-certificate-data": "Y2VydA=="}, "client-certificate and client-key go together"),
        ({"client-key-data": "%%%"}, "client-key-data is not base64"),
        ({"tokenFile": "gone"}, "tokenFile: there is no file '.*/gone'"),
        ({"token": "a\nb"}, "token holds characters that no token has"),
        ({"token": ["a"]}, "token must be text"),
    ],
)
def test_a_login_that_podgpu_cannot_use_is_refused(tmp_path: Path, user: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=f"config: user 'u': {message}"):
        config(tmp_path, user)


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        (
            {"insecure-skip-tls-verify": True},
            "insecure-skip-tls-verify is not supported: podgpu always checks",
        ),
        ({"proxy-url": "http://p"}, "proxy-url is not supported"),
        ({"tls-server-name": "k"}, "tls-server-name is not supported"),
        ({"server": "h:1"}, "server is not a URL; write it like https://"),
        ({"certificate-authority": "gone"}, "certificate-authority: there is no file"),
    ],
)
def test_a_cluster_that_podgpu_cannot_use_is_refused(tmp_path: Path, cluster: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=f"config: cluster 'c': {message}"):
        config(tmp_path, **cluster)


def test_false_is_no_wish(tmp_path: Path) -> None:
    assert config(tmp_path, **{"insecure-skip-tls-verify": False}).url == "https://h:1"


def test_without_a_current_context_those_there_are_named(tmp_path: Path) -> None:
    path = written(tmp_path / "config", {}, {}, **{"current-context": ""})
    with pytest.raises(UserError, match=r"has no current-context; choose one with --kube\.context: prod"):
        account(path)


@pytest.mark.parametrize("context", ["", "prod"])
def test_without_any_context_another_file_is_needed(tmp_path: Path, context: str) -> None:
    path = written(tmp_path / "config", {}, {}, **{"current-context": "", "contexts": []})
    with pytest.raises(UserError, match=r"has no contexts; give a kubeconfig that has one with --kube\.kubeconfig"):
        account(path, context)


@given(st.one_of(st.binary(max_size=60), st.text(alphabet="contexs: -\n[]{}'\"&*!", max_size=60).map(str.encode)))
def test_whatever_the_file_holds_the_answer_is_a_sentence(content: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config"
        path.write_bytes(content)
        with pytest.raises(UserError):
            account(path)
