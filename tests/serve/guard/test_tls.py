"""TLS over real sockets."""

import asyncio
import ssl
import subprocess
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from podgpu.errors import UserError
from podgpu.serve.guard.guard import Guard
from podgpu.serve.server import NodeServer
from tests.patience import PATIENCE, LoopClock, until
from tests.serve.guard.certificates import Authority, Pair, web_config
from tests.serve.rig import PATIENT, Answer, StubNode, big_page, connected, serving

OPTIONAL = "  client_auth_type: VerifyClientCertIfGiven\n"
REQUIRED = "  client_auth_type: RequireAndVerifyClientCert\n"


async def page(server: NodeServer, context: ssl.SSLContext, path: str = "/metrics") -> Answer:
    async with connected(server, ssl=context) as client:
        return await client.get(path)


async def test_a_page_is_served_over_tls(authority: Authority, server_pair: Pair, tmp_path: Path) -> None:
    async with serving(StubNode(), guard=Guard(web_config(tmp_path, server_pair))) as server:
        assert server.scheme == "https"
        async with connected(server, ssl=authority.client()) as client:
            pages = [await client.get("/metrics") for _ in range(3)]
            version = client.writer.get_extra_info("ssl_object").version()
    assert [page.status for page in pages] == [200] * 3
    assert b"podgpu_build_info" in pages[0].body
    assert version == "TLSv1.3"


async def test_a_request_right_behind_the_handshake_is_answered(
    authority: Authority, server_pair: Pair, tmp_path: Path
) -> None:
    """Clients of TLS 1.3 send their first request together with the end of the handshake."""
    async with serving(StubNode(), guard=Guard(web_config(tmp_path, server_pair))) as server:
        answers = await asyncio.gather(*(page(server, authority.client()) for _ in range(30)))
    assert {answer.status for answer in answers} == {200}


async def test_a_large_page_arrives_whole(authority: Authority, server_pair: Pair, tmp_path: Path) -> None:
    guard = Guard(web_config(tmp_path, server_pair))
    async with serving(StubNode(), guard=guard, dialects={"big": big_page()}) as server:
        big = await page(server, authority.client(), "/metrics/big")
    assert len(big.body) > 10_000_000


async def test_paths_start_from_the_folder_of_the_file(
    authority: Authority, server_pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    path = tmp_path / "web-config.yml"
    path.write_text("tls_server_config: {cert_file: tls.crt, key_file: tls.key}")
    async with serving(StubNode(), guard=Guard(path)) as server:
        assert (await page(server, authority.client())).status == 200


@pytest.mark.parametrize(("highest", "fits"), [(ssl.TLSVersion.TLSv1_2, False), (ssl.TLSVersion.TLSv1_3, True)])
async def test_a_version_below_the_lowest_is_refused(
    authority: Authority, server_pair: Pair, tmp_path: Path, highest: ssl.TLSVersion, fits: bool
) -> None:
    context = authority.client()
    context.maximum_version = highest
    guard = Guard(web_config(tmp_path, server_pair, "  min_version: TLS13\n"))
    async with serving(StubNode(), guard=guard) as server:
        if fits:
            assert (await page(server, context)).status == 200
        else:
            with pytest.raises(OSError):  # noqa: PT011 - an alert or a reset
                await page(server, context)


async def test_the_chosen_suite_is_used(authority: Authority, server_pair: Pair, tmp_path: Path) -> None:
    chosen = "  max_version: TLS12\n  cipher_suites: [TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256]\n"
    guard = Guard(web_config(tmp_path, server_pair, chosen))
    async with (
        serving(StubNode(), guard=guard) as server,
        connected(server, ssl=authority.client()) as client,
    ):
        assert client.writer.get_extra_info("cipher")[0] == "ECDHE-ECDSA-CHACHA20-POLY1305"


async def test_a_client_without_a_certificate_gets_the_probes_only(
    authority: Authority, server_pair: Pair, tmp_path: Path
) -> None:
    guard = Guard(web_config(tmp_path, server_pair, f"{REQUIRED}  client_ca_file: {authority.cert}\n"))
    async with serving(StubNode(), guard=guard) as server:
        answers = {
            path: (await page(server, authority.client(), path)).status
            for path in ("/metrics", "/", "/api/v1/snapshot", "/nowhere", "/-/release")
        }
        probes = [await page(server, authority.client(), path) for path in ("/-/healthy", "/-/ready", "/healthz")]
        own = await page(server, authority.client(authority.sign("prometheus")))
    assert set(answers.values()) == {403}
    assert [probe.status for probe in probes] == [200] * 3
    assert own.status == 200


@pytest.mark.parametrize("kind", [OPTIONAL, REQUIRED])
async def test_a_certificate_of_a_stranger_is_refused(
    authority: Authority, stranger: Authority, server_pair: Pair, tmp_path: Path, kind: str
) -> None:
    guard = Guard(web_config(tmp_path, server_pair, f"{kind}  client_ca_file: {authority.cert}\n"))
    async with serving(StubNode(), guard=guard) as server:
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await page(server, authority.client(stranger.sign("intruder")), "/-/healthy")
        assert (await page(server, authority.client(), "/-/healthy")).status == 200


async def test_a_certificate_may_be_left_out_where_it_is_optional(
    authority: Authority, server_pair: Pair, tmp_path: Path
) -> None:
    guard = Guard(web_config(tmp_path, server_pair, f"{OPTIONAL}  client_ca_file: {authority.cert}\n"))
    async with serving(StubNode(), guard=guard) as server:
        assert (await page(server, authority.client())).status == 200


async def test_silent_clients_do_not_block_others(authority: Authority, server_pair: Pair, tmp_path: Path) -> None:
    guard = Guard(web_config(tmp_path, server_pair))
    async with serving(StubNode(), guard=guard) as server, AsyncExitStack() as stack:
        silent = [await stack.enter_async_context(connected(server)) for _ in range(20)]
        silent[0].send(b"\x16\x03\x01")  # the beginning of a handshake
        assert (await page(server, authority.client())).status == 200
        assert server.clients >= 20


async def test_silent_clients_are_cut(authority: Authority, server_pair: Pair, tmp_path: Path) -> None:
    limits = replace(PATIENT, head_seconds=50.0)  # less than asyncio's own patience with a handshake
    guard, clock = Guard(web_config(tmp_path, server_pair)), LoopClock()
    async with (
        serving(StubNode(), guard=guard, limits=limits) as server,
        connected(server) as silent,
        connected(server) as beginner,
        connected(server) as halfway,
    ):
        beginner.send(b"\x16\x03\x01")  # the beginning of a handshake
        halfway.send(greeting(authority.client()))
        await halfway.reader.readexactly(1)  # the server has sent its part
        await until(lambda: server.clients == 3)
        clock.set_ahead(limits.head_seconds + limits.sweep_seconds)
        assert [await client.rest() for client in (silent, beginner)] == [b"", b""]
        assert await halfway.rest(), "the rest of the server's part"


def greeting(context: ssl.SSLContext) -> bytes:
    """What a client sends first."""
    sent = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost").do_handshake()
    return sent.read()


async def test_silent_handshakes_make_room(authority: Authority, server_pair: Pair, tmp_path: Path) -> None:
    guard = Guard(web_config(tmp_path, server_pair))
    limits = replace(PATIENT, settle_seconds=0)
    async with (
        serving(StubNode(), guard=guard, limits=limits, max_connections=2) as server,
        connected(server) as older,
        connected(server) as younger,
    ):
        for client in (older, younger):
            client.send(greeting(authority.client()))
            await client.reader.readexactly(1)  # the server's turn is over
        assert (await page(server, authority.client(), "/-/healthy")).status == 200
        assert await younger.rest()
        older.send(b"\x15\x03\x03\x00\x02\x01\x00")  # closes in order: it still had its place
        assert await older.rest()


async def test_plain_http_to_a_tls_port_is_closed(
    authority: Authority, server_pair: Pair, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(StubNode(), guard=Guard(web_config(tmp_path, server_pair))) as server:
        async with connected(server) as client:
            client.ask("/metrics")
            assert b"podgpu" not in await client.rest()
        assert (await page(server, authority.client())).status == 200
    assert caplog.records == []


async def test_stop_ends_a_handshake(server_pair: Pair, tmp_path: Path) -> None:
    async with (
        serving(StubNode(), guard=Guard(web_config(tmp_path, server_pair))) as server,
        connected(server) as silent,
    ):
        await until(lambda: server.clients == 1)
        await asyncio.wait_for(server.stop(), PATIENCE)
        assert await silent.rest() == b""


def test_a_key_of_another_certificate_is_refused(stranger: Authority, server_pair: Pair, tmp_path: Path) -> None:
    path = web_config(tmp_path, Pair(server_pair.cert, stranger.pair.key))
    with pytest.raises(UserError, match=r"do not go together .*; give a certificate and its own key"):
        Guard(path)


@pytest.mark.parametrize("which", ["tls.crt", "tls.key"])
def test_a_file_that_is_missing_is_named(server_pair: Pair, tmp_path: Path, which: str) -> None:
    (tmp_path / which).unlink()
    with pytest.raises(UserError, match=f"cannot read .*{which}: No such file"):
        Guard(web_config(tmp_path, server_pair))


def test_an_authority_that_is_none_is_refused(server_pair: Pair, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("nothing")
    path = web_config(tmp_path, server_pair, f"{REQUIRED}  client_ca_file: ca.crt\n")
    with pytest.raises(UserError, match=r"ca.crt holds no certificates"):
        Guard(path)


def test_a_key_with_a_password_is_refused_and_not_asked_for(server_pair: Pair, tmp_path: Path) -> None:
    locked = tmp_path / "locked.key"
    words = [
        "openssl",
        "pkcs8",
        "-topk8",
        "-passout",
        "pass:x",
        "-in",
        str(server_pair.key),
        "-out",
        str(locked),
    ]
    subprocess.run(words, check=True, capture_output=True)
    with pytest.raises(UserError, match=r"locked.key do not go together .* without a password"):
        Guard(web_config(tmp_path, Pair(server_pair.cert, locked)))


async def test_a_closing_answer_arrives_whole(authority: Authority, server_pair: Pair, tmp_path: Path) -> None:
    guard = Guard(web_config(tmp_path, server_pair))
    async with (
        serving(StubNode(), guard=guard, dialects={"big": big_page()}) as server,
        connected(server, ssl=authority.client()) as client,
    ):
        big = await client.get("/metrics/big", Connection="close")
        assert big.headers["connection"] == "close"
        assert await client.rest() == b""


async def test_a_slow_reader_is_cut_and_its_place_is_free_again(
    authority: Authority, server_pair: Pair, tmp_path: Path
) -> None:
    limits = replace(PATIENT, settle_seconds=20 * PATIENCE)  # nothing else cuts a client
    guard, big = Guard(web_config(tmp_path, server_pair)), {"big": big_page()}
    context, clock = authority.client(), LoopClock()
    async with serving(StubNode(), guard=guard, dialects=big) as server:
        full = len((await page(server, context, "/metrics/big")).body)
    async with (
        serving(StubNode(), guard=guard, limits=limits, max_connections=1, dialects=big) as server,
        connected(server, ssl=context) as slow,
    ):
        slow.ask("/metrics/big")
        await slow.reader.readexactly(1)  # the answer is on its way
        with pytest.raises(ConnectionError):
            await page(server, context)

        # The answer may still be on its way to where it stalls, so time goes on until it has been cut.
        while True:
            clock.set_ahead(limits.write_seconds + limits.sweep_seconds)
            with suppress(ConnectionError):
                assert (await page(server, context)).status == 200
                break
            await asyncio.sleep(0.02)
        assert len(await slow.rest()) < full
