"""Changes of the files while the server runs."""

import asyncio
import ssl
from collections.abc import Callable
from functools import partial
from operator import contains
from pathlib import Path

import pytest

from podgpu.serve.guard.guard import Guard
from podgpu.serve.http.request import Limits
from podgpu.serve.server import NodeServer
from tests.patience import PATIENCE
from tests.serve.guard.certificates import Authority, Pair, web_config
from tests.serve.guard.login import basic, hashed, shown
from tests.serve.rig import StubNode, connected, serving

LIMITS = Limits(sweep_seconds=0.02)


async def served(server: NodeServer, context: ssl.SSLContext) -> bytes:
    """The certificate that a new connection gets."""
    async with connected(server, ssl=context) as client:
        assert (await client.get("/metrics")).status == 200
        certificate: bytes = client.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return certificate


def swap(pair: Pair, other: Pair) -> None:
    """Put another certificate in place, the one file after the other."""
    for path, new in ((pair.cert, other.cert), (pair.key, other.key)):
        path.with_suffix(".new").write_bytes(new.read_bytes())
        path.with_suffix(".new").rename(path)


def der(path: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert(path.read_text())


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(int(PATIENCE / 0.02)):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("this did not happen in time")


async def logged(caplog: pytest.LogCaptureFixture, words: str) -> None:
    await until(lambda: words in caplog.text + str([getattr(record, "fields", "") for record in caplog.records]))


async def test_a_certificate_is_swapped_under_load_without_a_failed_scrape(
    authority: Authority, server_pair: Pair, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    pairs = [authority.sign(f"renewed-{number}") for number in range(3)]
    context, seen, ending = authority.client(), set(), asyncio.Event()

    async def scrape(server: NodeServer) -> int:
        count = 0
        while not ending.is_set():
            seen.add(await served(server, context))
            count += 1
        return count

    async def keep(server: NodeServer) -> int:
        count = 0
        async with connected(server, ssl=context) as client:
            while not ending.is_set():
                assert (await client.get("/metrics")).status == 200
                count += 1
                await asyncio.sleep(0.005)
        return count

    guard = Guard(web_config(tmp_path, server_pair))
    async with serving(StubNode(), guard=guard, limits=LIMITS) as server:
        clients = [asyncio.create_task(behave(server)) for behave in (scrape, scrape, scrape, keep)]
        for pair in pairs:
            swap(server_pair, pair)
            await until(partial(contains, seen, der(pair.cert)))
        ending.set()
        counts = await asyncio.gather(*clients)
    assert all(count > len(pairs) for count in counts)
    assert "refused" not in caplog.text


def test_a_certificate_and_its_key_may_come_one_after_the_other(
    authority: Authority, server_pair: Pair, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    guard, renewed = Guard(web_config(tmp_path, server_pair)), authority.sign("renewed")
    before = guard.context
    server_pair.cert.write_bytes(renewed.cert.read_bytes())
    guard.reload()
    server_pair.key.write_bytes(renewed.key.read_bytes())
    guard.reload()
    assert guard.context is before
    guard.reload()
    assert guard.context is not before
    assert "refused" not in caplog.text


async def test_a_changed_password_counts_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    path = tmp_path / "web-config.yml"
    path.write_text(f"basic_auth_users: {{alice: {hashed('old')}}}")
    async with serving(StubNode(), guard=Guard(path), limits=LIMITS) as server:
        assert (await shown(server, basic("alice:old"))).status == 200
        path.write_text(f"basic_auth_users: {{alice: {hashed('new')}}}")
        await logged(caplog, "read again")
        assert (await shown(server, basic("alice:old"))).status == 401
        assert (await shown(server, basic("alice:new"))).status == 200


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("basic_auth_users: {alice: secret}", "not a bcrypt hash"),
        ("basic_auth_user: {}", "unknown key"),
        ("", "no longer asks for passwords"),
        (None, "cannot read"),
        ("tls_server_config: {cert_file: none.crt, key_file: none.key}", "none.crt"),
    ],
)
async def test_a_bad_change_is_refused_once_and_the_old_rules_stay(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, change: str | None, reason: str
) -> None:
    path = tmp_path / "web-config.yml"
    good = f"basic_auth_users: {{alice: {hashed('old')}}}"
    path.write_text(good)
    caplog.set_level("INFO")
    async with serving(StubNode(), guard=Guard(path), limits=LIMITS) as server:
        path.unlink()
        if change is not None:
            path.write_text(change)
        await logged(caplog, reason)
        await asyncio.sleep(0.2)
        assert caplog.text.count("refused") == 1
        assert "secret" not in str([record.__dict__ for record in caplog.records])
        assert (await shown(server, basic("alice:old"))).status == 200
        assert (await shown(server, None)).status == 401
        path.write_text(good)
        await logged(caplog, "read again")


async def test_a_certificate_that_comes_later_is_found(
    authority: Authority, server_pair: Pair, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The file names a certificate that is not there yet."""
    guard = Guard(path := web_config(tmp_path, server_pair))
    late = tmp_path / "late.crt"
    async with serving(StubNode(), guard=guard, limits=LIMITS) as server:
        path.write_text(f"tls_server_config: {{cert_file: late.crt, key_file: {server_pair.key}}}")
        await logged(caplog, "late.crt")
        late.write_bytes(server_pair.cert.read_bytes())
        caplog.set_level("INFO")
        await logged(caplog, "read again")
        assert await served(server, authority.client()) == der(late)


async def test_a_kubernetes_volume_is_followed(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The kubelet swaps the link ..data, and the files behind it keep their names."""
    caplog.set_level("INFO")
    pairs = []
    for version in ("1", "2"):
        pair = authority.sign(f"volume-{version}")
        (tmp_path / version).mkdir()
        (tmp_path / version / "tls.crt").write_bytes(pair.cert.read_bytes())
        (tmp_path / version / "tls.key").write_bytes(pair.key.read_bytes())
        pairs.append(pair)
    (tmp_path / "..data").symlink_to("1")
    mounted = Pair(tmp_path / "..data/tls.crt", tmp_path / "..data/tls.key")
    async with serving(StubNode(), guard=Guard(web_config(tmp_path, mounted)), limits=LIMITS) as server:
        assert await served(server, authority.client()) == der(pairs[0].cert)
        (tmp_path / "..new").symlink_to("2")
        (tmp_path / "..new").rename(tmp_path / "..data")
        await logged(caplog, "read again")
        assert await served(server, authority.client()) == der(pairs[1].cert)


async def test_an_authority_taken_away_is_trusted_no_longer(
    authority: Authority,
    stranger: Authority,
    server_pair: Pair,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    (tmp_path / "ca.crt").write_bytes(authority.cert.read_bytes())
    kind = "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n"
    context = authority.client(authority.sign("prometheus"))
    async with serving(StubNode(), guard=Guard(web_config(tmp_path, server_pair, kind)), limits=LIMITS) as server:
        await served(server, context)
        (tmp_path / "ca.crt").write_bytes(stranger.cert.read_bytes())
        await logged(caplog, "read again")
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await served(server, context)
