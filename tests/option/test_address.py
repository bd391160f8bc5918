import pytest

from podgpu.errors import UserError
from podgpu.option.value import Address, base_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":19400", Address("", 19400)),
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        ("[::1]:19400", Address("::1", 19400)),
        ("[fe80::1%eth0]:80", Address("fe80::1%eth0", 80)),
        ("localhost:9401=pod-gpu-map", Address("localhost", 9401, "pod-gpu-map")),
        (":65535=native", Address("", 65535)),
    ],
)
def test_every_form_is_understood(text: str, address: Address) -> None:
    assert Address.parse(text) == address


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("19400", "has no port"),
        ("localhost", "has no port"),
        ("", "has no port"),
        (":", "0 to 65535"),
        (":65536", "0 to 65535"),
        (":-1", "0 to 65535"),
        (":\uff18\uff10", "0 to 65535"),
        (":80 ", "0 to 65535"),
        ("::1:19400", "in brackets"),
        ("[::1", "in brackets"),
        ("[nonsense]:80", "no IPv6 address"),
        ("[127.0.0.1]:80", "no IPv6 address"),
        ("http://localhost:80", "is not an address; write HOST:PORT"),
        ("19400", "write :19400"),
        ("a b:80", "HOST:PORT"),
        ("a\nb:80", "HOST:PORT"),
        (":80=", "names no dialect"),
    ],
)
def test_anything_else_is_refused_with_advice(text: str, advice: str) -> None:
    with pytest.raises(UserError, match=advice):
        Address.parse(text)


@pytest.mark.parametrize("text", [":19400", "127.0.0.1:0", "[::1]:19400", "localhost:9401=pod-gpu-map"])
def test_an_address_is_written_as_it_was_read(text: str) -> None:
    assert str(Address.parse(text)) == text


@pytest.mark.parametrize("text", ["http://a:hunter2@h:port", "http://a:hunter2@h:1/?x#y", "ftp://a:hunter2@h"])
def test_a_password_in_a_url_is_in_no_message(text: str) -> None:
    with pytest.raises(UserError) as caught:
        base_address(text)
    assert "hunter2" not in str(caught.value)
