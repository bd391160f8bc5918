"""Which account the options choose, and which options contradict each other."""

from pathlib import Path

import pytest

from podgpu.assembly.api_server import chosen_account, open_api_server
from podgpu.config.precedence import load
from podgpu.errors import UserError
from podgpu.kube.api import ApiAccount
from tests.fakeapi.certificate import certificate
from tests.fakeapi.server import FakeApi

URL = "https://10.0.0.1:6443"


def account(**options: object) -> ApiAccount | None:
    return chosen_account(load({f"kube_{name}": [str(value)] for name, value in options.items()}, {}), {})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_text("text")
    return path


def test_files_and_an_address_make_an_account(file: Path) -> None:
    found = account(api=URL, token_file=file, ca_file=file, client_cert_file=file, client_key_file=file)
    assert found and (found.url, found.login.token_file, found.login.ca_file) == (URL, file, file)
    assert found.login.client and (found.login.client.cert, found.login.client.key) == (file, file)


def test_an_address_that_is_given_does_not_get_the_service_accounts_token() -> None:
    inside = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}
    found = chosen_account(load({"kube_api": [URL]}, {}), inside)
    assert found and not found.login.identifies


def test_off_asks_nobody() -> None:
    assert account(api="off") is None
    assert account() is None


async def test_a_real_server_is_asked_with_the_files(tmp_path: Path) -> None:
    cert, context = certificate(tmp_path)
    (tmp_path / "token").write_text("secret")
    async with FakeApi(objects={"/thing": {"a": 1}}, tls=context, token="secret") as fake:
        flags = {"kube_api": fake.url, "kube_token_file": tmp_path / "token", "kube_ca_file": cert}
        api = open_api_server(load({name: [str(value)] for name, value in flags.items()}, {}))
        assert api
        assert await api.get("/thing", dict) == {"a": 1}
        await api.close()


def test_a_kubeconfig_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(
        "current-context: a\n"
        "contexts: [{name: a, context: {cluster: c, user: u}}]\n"
        f"clusters: [{{name: c, cluster: {{server: '{URL}'}}}}]\n"
        "users: [{name: u, user: {token: t}}]\n"
    )
    found = account(kubeconfig=path)
    assert found and (found.url, found.login.token) == (URL, "t")
    assert account(kubeconfig=path, api="off") is None
    path.write_text(path.read_text().replace("https", "http"))
    with pytest.raises(UserError, match="a login is never sent over plain HTTP"):
        account(kubeconfig=path)


def test_options_that_contradict_each_other_are_refused(file: Path) -> None:
    cases: list[tuple[dict[str, object], str]] = [
        ({"api": URL, "kubeconfig": file}, "both name an API server; leave one out"),
        ({"context": "prod"}, "give its path with --kube.kubeconfig"),
        ({"token_file": file}, r"--kube\.token-file goes with --kube\.api=URL"),
        ({"api": "off", "ca_file": file}, r"--kube\.ca-file goes with --kube\.api=URL"),
        ({"kubeconfig": file, "client_key_file": file}, r"--kube\.client-key-file goes with"),
        ({"api": URL, "client_cert_file": file}, "go together; give both or none"),
        ({"api": "http://10.0.0.1:8001", "token_file": file}, "never sent over plain HTTP"),
    ]
    for options, message in cases:
        with pytest.raises(UserError, match=message):
            account(**options)


def test_a_file_that_is_not_there_is_named_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^--kube\.token-file: there is no file"):
        account(api=URL, token_file=tmp_path / "gone")
