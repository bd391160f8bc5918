import asyncio
import socket

import pytest

from podgpu.errors import UserError
from podgpu.option.value import Address
from podgpu.serve.server import bind

TWO = ("127.83.0.1", "127.83.0.2")  # no client of another test has a port there


@pytest.fixture
def _two_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name stands for two addresses, as a host with IPv4 and IPv6 does."""

    async def getaddrinfo(*_: object, **__: object) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (place, 0)) for place in TWO]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)


@pytest.mark.usefixtures("_two_addresses")
async def test_a_name_is_bound_at_all_its_addresses_under_one_port() -> None:
    bound = await bind(Address("twice", 0))
    names = [listener.getsockname() for listener in bound]
    for listener in bound:
        listener.close()
    assert [place for place, _ in names] == list(TWO)
    assert len({port for _, port in names}) == 1


async def test_the_kernel_buffers_no_more_than_a_mebibyte_for_a_client() -> None:
    (listener,) = await bind(Address("127.0.0.1", 0))
    with listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) <= 1 << 20


@pytest.mark.usefixtures("_two_addresses")
async def test_when_one_address_is_taken_the_other_is_let_go() -> None:
    with socket.socket() as taken:
        taken.bind((TWO[1], 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match="the port is in use"):
            await bind(Address("twice", port))
        with socket.socket() as free:
            free.bind((TWO[0], port))


async def test_a_low_port_without_privileges_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_socket: socket.socket, _place: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(UserError, match="ports below 1024 need privileges"):
        await bind(Address("127.0.0.1", 80))
