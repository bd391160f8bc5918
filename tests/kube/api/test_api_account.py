from pathlib import Path

import pytest

from podgpu.errors import UserError
from podgpu.kube.api import ApiAccount, checked_account
from podgpu.net.login import ClientCertificate, Login

TOKEN = Path("/token")


@pytest.mark.parametrize(
    "account",
    [
        ApiAccount("https://10.0.0.1:6443", Login(token_file=TOKEN)),
        ApiAccount("https://10.0.0.1:6443", Login(token="secret")),
        ApiAccount("http://10.0.0.1:8001", Login()),
        ApiAccount("http://127.0.0.1:8001", Login(token_file=TOKEN)),
        ApiAccount("http://[::1]:8001", Login(token="secret")),
        ApiAccount("http://localhost:8001", Login(token_file=TOKEN)),
    ],
)
def test_a_token_goes_over_tls_or_stays_on_the_machine(account: ApiAccount) -> None:
    assert checked_account(account) is account


@pytest.mark.parametrize(
    "account",
    [
        ApiAccount("http://10.0.0.1:8001", Login(token_file=TOKEN)),
        ApiAccount("http://10.0.0.1:8001", Login(token="secret")),
        ApiAccount("http://127.0.0.1.example.org:8001", Login(token_file=TOKEN)),
        ApiAccount("http://localhost.example.org:8001", Login(token_file=TOKEN)),
        ApiAccount("HTTP://10.0.0.1:8001", Login(token_file=TOKEN)),
    ],
)
def test_a_token_is_never_sent_over_plain_http(account: ApiAccount) -> None:
    with pytest.raises(UserError, match="a login is never sent over plain HTTP; write https://"):
        checked_account(account)


def test_certificates_mean_nothing_over_plain_http() -> None:
    client = ClientCertificate(cert=Path("/cert"), key=Path("/key"))
    for account in (
        ApiAccount("http://h", Login(ca_file=Path("/ca"))),
        ApiAccount("http://h", Login(client=client)),
    ):
        with pytest.raises(UserError, match="certificates mean nothing over plain HTTP"):
            checked_account(account)


def test_a_password_in_the_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(UserError, match="leave them out") as caught:
        checked_account(ApiAccount("https://admin:hunter2@10.0.0.1", Login()))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["https://[::1", "https://:6443", "https://10.0.0.1:port", "https://10.0.0.1:99999"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UserError, match="write it like https://"):
        checked_account(ApiAccount(url, Login()))


def test_a_secret_is_in_no_representation() -> None:
    client = ClientCertificate(cert="CERT", key="hunter2")
    assert "hunter" not in repr(ApiAccount("https://h", Login(token="hunter3", client=client))) + repr(client)
