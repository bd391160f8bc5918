"""A real oauth2-proxy in front of a real agent, as docs/serving.md sets it up: who gets what, and by which name."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPConnection
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener

import pytest
import pytest_asyncio

from tests.browser.chromium import PROGRAM, Browser, browser
from tests.e2e.rig import eventually, get, logged, running
from tests.login.provider import CLIENT, SECRET, Provider, provider
from tests.patience import PATIENCE
from tests.ports import quiet_port
from tests.serve.guard.login import basic, hashed

PROXY = os.environ.get("PODGPU_OAUTH2_PROXY") or shutil.which("oauth2-proxy")
EMAIL = "alice@example.com"
STRANGER = "127.0.0.3"

pytestmark = pytest.mark.skipif(
    not PROXY, reason="needs oauth2-proxy at $PODGPU_OAUTH2_PROXY; make test-login builds it"
)


@dataclass(frozen=True)
class Site:
    agent: str
    proxy: str
    provider: Provider
    web_config: Path

    def browser(self) -> OpenerDirector:
        return build_opener(HTTPCookieProcessor(CookieJar()))

    def directly(self, path: str, **headers: str) -> int:
        """Ask the agent from an address that is not the proxy's."""
        host = urlsplit(self.agent).netloc
        connection = HTTPConnection(host, timeout=PATIENCE, source_address=(STRANGER, 0))
        try:
            connection.request("GET", path, headers={name.replace("_", "-"): text for name, text in headers.items()})
            return connection.getresponse().status
        finally:
            connection.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("login")
    web_config = folder / "web-config.yml"
    web_config.write_text(passwords("secret"))
    agent = [sys.executable, "-m", "podgpu", "demo", "--web.listen-address=127.0.0.1:0"]
    agent += [f"--web.config.file={web_config}", "--web.trusted-proxy=127.0.0.1"]
    agent += ["--web.user-header=X-Forwarded-Email", "--interval=1s"]
    with ExitStack() as stack:
        stack.enter_context(running(agent, folder / "agent.log"))
        address = logged(folder / "agent.log", r'addresses="?([^"\s]+)')
        url = f"http://{address}"
        there = stack.enter_context(provider(folder, EMAIL))
        port = quiet_port()
        stack.enter_context(running(_proxy(port, url, there), folder / "proxy.log"))
        here = Site(url, f"http://127.0.0.1:{port}", there, web_config)
        eventually(lambda: _listens(port))
        eventually(lambda: get(f"{url}/-/ready").status == 200)
        yield here


def passwords(password: str) -> str:
    return f"basic_auth_users:\n  prometheus: {hashed(password)}\n"


def _proxy(port: int, upstream: str, issuer: Provider) -> list[str]:
    return [
        str(PROXY),
        f"--http-address=127.0.0.1:{port}",
        f"--upstream={upstream}",
        "--provider=oidc",
        f"--oidc-issuer-url={issuer.url}",
        f"--redirect-url=http://127.0.0.1:{port}/oauth2/callback",
        "--email-domain=example.com",
        "--skip-provider-button=true",
        "--skip-jwt-bearer-tokens=true",
        f"--client-id={CLIENT}",
        f"--client-secret={SECRET}",
        f"--cookie-secret={'c' * 32}",
        "--cookie-secure=false",
    ]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _events(site: Site, opener: OpenerDirector, **headers: str) -> str:
    """Read the event stream up to its first document."""
    request = Request(f"{site.proxy}/api/v1/events", headers={"Accept-Encoding": "identity", **headers})
    with opener.open(request, timeout=PATIENCE) as stream:
        lines = iter(stream.readline, b"")
        return "".join(line.decode() for line in iter(lambda: next(lines), b"event: full\n"))


def test_after_the_login_the_page_and_its_documents_are_there(site: Site) -> None:
    opener = site.browser()
    with opener.open(f"{site.proxy}/", timeout=PATIENCE) as page:  # by way of the provider
        assert page.url == f"{site.proxy}/"
        assert b"podgpu" in page.read()
    with opener.open(f"{site.proxy}/api/v1/snapshot", timeout=PATIENCE) as document:
        assert json.load(document)["cards"]
    assert f'event: user\ndata: "{EMAIL}"\n' in _events(site, opener)


def test_nobody_can_take_another_name(site: Site) -> None:
    opener = site.browser()
    opener.open(f"{site.proxy}/", timeout=PATIENCE).close()
    for header in ("X-Forwarded-Email", "X-Forwarded-User", "X-Auth-Request-Email"):
        events = _events(site, opener, **{header: "root@example.com"})
        assert f'data: "{EMAIL}"\n' in events
        assert "root@example.com" not in events


@pytest.mark.parametrize("path", ["/metrics", "/api/v1/snapshot", "/api/v1/events"])
def test_without_a_login_the_proxy_passes_nothing_on(site: Site, path: str) -> None:
    refused = get(f"{site.proxy}{path}", Accept="application/json", **{"X-Forwarded-Email": EMAIL})
    assert refused.status == 401
    assert b"podgpu_" not in refused.body


def test_beside_the_proxy_only_a_password_opens_the_pages(site: Site) -> None:
    assert site.directly("/metrics", X_Forwarded_Email=EMAIL, X_Forwarded_For="127.0.0.1") == 401
    assert site.directly("/metrics", Authorization=basic("prometheus:secret")) == 200
    assert site.directly("/-/ready") == 200


def test_a_program_logs_in_with_a_token_of_the_provider(site: Site, tmp_path: Path) -> None:
    token = site.provider.token()
    path = f"{site.proxy}/api/v1/snapshot"
    assert get(path, Authorization=f"Bearer {token}").status == 200
    assert get(path, Authorization=f"Bearer {token}x", Accept="application/json").status == 401
    file = tmp_path / "token"
    file.write_text(token)
    command = [
        sys.executable,
        "-m",
        "podgpu",
        "snapshot",
        f"--url={site.proxy}",
        f"--login.token-file={file}",
    ]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert "8 GPUs" in shown.stdout, shown.stderr


@pytest_asyncio.fixture
async def chromium() -> AsyncIterator[Browser]:
    if PROGRAM is None:
        pytest.skip("needs Debian's chromium")
    async with browser() as started:
        yield started


async def test_the_page_says_who_has_logged_in(site: Site, chromium: Browser) -> None:
    for width, height in ((1440, 900), (390, 844)):
        async with chromium.page(width, height) as page:
            await page.open(f"{site.proxy}/")
            await page.expect_text("header .user", EMAIL)
            await page.expect_text("#state", "live")


async def test_the_page_says_that_the_login_has_ended(site: Site, chromium: Browser) -> None:
    async with chromium.page() as page:
        await page.open(f"{site.proxy}/")
        await page.expect_text("#state", "live")
        await page.send("Network.clearBrowserCookies")
        # With new passwords, streams end; the page asks for the next, and is sent to the provider.
        site.web_config.write_text(passwords("another"))
        await page.expect_text("#state", "logged out: reload the page to log in")
        await page.open(f"{site.proxy}/")
        await page.expect_text("#state", "live")
        await page.expect_text("header .user", EMAIL)
