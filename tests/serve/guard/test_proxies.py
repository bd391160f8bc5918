"""What a proxy in front says of its clients is believed from its own address, and from no other."""

import asyncio
from collections.abc import Mapping
from ipaddress import ip_network
from pathlib import Path

import pytest

from podgpu.errors import UserError
from podgpu.option.value import header_name, network
from podgpu.serve.guard.guard import MAX_USER, Guard, TrustedProxies
from podgpu.serve.http.request import Request
from tests.patience import PATIENCE
from tests.serve.guard.login import basic, hashed
from tests.serve.rig import Answer, StubNode, connected, fetch, serving

PROXY, STRANGER = "127.0.0.2", "127.0.0.3"
PROXIES = TrustedProxies([ip_network(PROXY), ip_network("10.0.0.0/8"), ip_network("fd00::/8")], "X-Forwarded-User")


def seen(remote: str, **headers: str) -> tuple[str, str]:
    names = {name.lower().replace("_", "-"): value for name, value in headers.items()}
    request = PROXIES.seen(Request("GET", "/", {}, names, remote))
    return request.remote, request.user


async def asked(source: str, headers: Mapping[str, str], guard: Guard, path: str = "/metrics") -> Answer:
    async with (
        serving(StubNode(), guard=guard) as server,
        connected(server, local_addr=(source, 0)) as client,
    ):
        return await client.get(path, **headers)


@pytest.mark.parametrize("path", ["/metrics", "/", "/api/v1/snapshot"])
async def test_a_user_whom_the_proxy_names_has_logged_in(path: str) -> None:
    assert (await asked(PROXY, {"X-Forwarded-User": "alice"}, Guard(proxies=PROXIES), path)).status == 200


@pytest.mark.parametrize("name", ["X-Forwarded-User", "X-Auth-Request-User", "Remote-User"])
async def test_anyone_else_who_names_a_user_has_not(name: str) -> None:
    answer = await asked(STRANGER, {name: "alice", "X-Forwarded-For": PROXY}, Guard(proxies=PROXIES))
    assert answer.status == 403
    assert b"--web.trusted-proxy" in answer.body
    assert b"worker-1" not in answer.body


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Forwarded-User": ""},
        {"X-Auth-Request-User": "alice"},
        {"X-Forwarded-User": "alice, mallory"},
        {"X-Forwarded-User": "x" * (MAX_USER + 1)},
        {"X-Forwarded-User": "a\u200bb"},
    ],
)
async def test_the_proxy_must_name_one_user_in_the_header_that_was_chosen(headers: dict[str, str]) -> None:
    assert (await asked(PROXY, headers, Guard(proxies=PROXIES))).status == 403


async def test_probes_need_no_login() -> None:
    assert (await asked(STRANGER, {}, Guard(proxies=PROXIES), "/-/ready")).status == 200


async def test_a_password_is_enough_without_the_proxy(tmp_path: Path) -> None:
    file = tmp_path / "web-config.yml"
    file.write_text(f"basic_auth_users:\n  prometheus: {hashed('secret')}\n")

    async def status(source: str, headers: Mapping[str, str]) -> int:
        return (await asked(source, headers, Guard(file, proxies=PROXIES))).status

    assert await status(STRANGER, {"Authorization": basic("prometheus:secret")}) == 200
    assert await status(STRANGER, {"Authorization": basic("prometheus:wrong"), "X-Forwarded-User": "alice"}) == 401
    assert await status(PROXY, {"X-Forwarded-User": "alice"}) == 200
    assert await status(PROXY, {}) == 401


async def test_without_proxies_the_headers_mean_nothing() -> None:
    guard = Guard()
    assert (await asked(STRANGER, {"X-Forwarded-User": "alice"}, guard)).status == 200
    request = Request("GET", "/", {}, {"x-forwarded-user": "alice", "x-forwarded-for": "192.0.2.1"}, PROXY)
    assert guard.proxies.seen(request) is request


@pytest.mark.parametrize(
    ("heard", "client"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("198.51.100.9, 192.0.2.1", "192.0.2.1"),  # the first was written by the client itself
        ("192.0.2.1, 10.1.2.3", "192.0.2.1"),  # the second is a proxy too
        ("2001:db8::1, fd00::1", "2001:db8::1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("10.1.2.3", "10.1.2.3"),
        ("nonsense", PROXY),
        ("192.0.2.1, nonsense", PROXY),
        ("", PROXY),
    ],
)
def test_the_client_is_the_last_that_is_no_proxy(heard: str, client: str) -> None:
    assert seen(PROXY, X_Forwarded_For=heard) == (client, "")
    assert seen(f"::ffff:{PROXY}", X_Forwarded_For=heard)[0] == client
    assert seen(STRANGER, X_Forwarded_For=heard) == (STRANGER, "")


def test_a_name_may_have_any_letters() -> None:
    assert seen(PROXY, X_Forwarded_User="Zoë".encode().decode("latin-1"))[1] == "Zoë"
    assert seen(PROXY, X_Forwarded_User="Zo\xeb")[1] == ""
    assert seen("", X_Forwarded_User="alice") == ("", "")


async def test_the_event_stream_begins_with_the_user() -> None:
    guard = Guard(proxies=PROXIES)
    async with serving(StubNode(), guard=guard) as server, connected(server, local_addr=(PROXY, 0)) as client:
        client.ask("/api/v1/events", X_Forwarded_User='al"ice', Accept_Encoding="identity")
        async with asyncio.timeout(PATIENCE):
            events = await client.reader.readuntil(b"event: full")
    assert b'event: user\ndata: "al\\"ice"\n\n' in events


async def test_what_a_proxy_here_passes_on_releases_nothing() -> None:
    node = StubNode()
    async with serving(node) as server:
        refused = await fetch(server, "/-/release", "POST", X_Forwarded_For="192.0.2.1")
    assert refused.status == 403
    assert not node.released


@pytest.mark.parametrize("text", ["10.0.0.1/8", "10.0.0.0/33", "gpu.example.org", "", "0.0.0.0/0", "::/0"])
def test_what_is_no_address_of_a_proxy_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="write"):
        network(text)


def test_what_is_no_header_is_refused() -> None:
    assert header_name("X-Forwarded-Email") == "X-Forwarded-Email"
    for text in ("", "X Forwarded", "X-User:"):
        with pytest.raises(UserError, match="X-Forwarded-User"):
            header_name(text)
