"""A real browser, driven over the DevTools protocol.

A page draws later than it is asked to: after a click, a key, a newer document or `open`, the first look may find what
was there before. So a test reads nothing at once. `expect(script, value)`, `expect_texts(selector, texts)` and
`expect_text(selector, *parts)` look again until the page has what the test wants, and after PATIENCE they fail with
what was wanted and what was found. `until(script)` waits until an expression is true and returns its value, for what is
used further on. An error in an expression means "not yet". What takes effect with the next frame is awaited with
`frames()`. That something does not happen is asserted after an event that would come later.
"""

import asyncio
import base64
import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType

from tests.patience import PATIENCE

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
LOOK_SECONDS = 0.03
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-extensions",
    "--hide-scrollbars",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
    "--force-color-profile=srgb",
    "--remote-debugging-port=0",
)


class ScriptError(AssertionError):
    """The page could not do it; it may be able to in a moment."""


class Page:
    """One tab. `complaints` are errors of scripts and violations of the policy."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._reader = asyncio.create_task(self._read())
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.trace: list[Any] = []
        self.traced = asyncio.Event()

    async def send(self, method: str, *, patience: float = PATIENCE, **params: Any) -> Any:
        self._number += 1
        answer = self._answers[self._number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._number, "method": method, "params": params})
        async with asyncio.timeout(patience):
            return await answer

    async def run(self, script: str, patience: float = PATIENCE) -> Any:
        """The value of an expression in the page, which may be a promise."""
        answer = await self.send(
            "Runtime.evaluate", patience=patience, expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise ScriptError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    async def until(self, script: str) -> Any:
        """Wait until an expression in the page is true, as JavaScript has it, and return its value."""
        return await self._look(script, lambda found: bool(found) or found in ([], {}), "what is true")

    async def expect(self, script: str, value: object) -> None:
        """Wait until an expression in the page has that value; `pytest.approx` is one."""
        await self._look(script, lambda found: found == value, value)

    async def expect_texts(
        self, selector: str, texts: Sequence[str], part: Callable[[str], str] = lambda text: text
    ) -> None:
        """Wait until the elements have these texts, or these parts of them."""
        wanted = list(texts)
        script = f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)"
        await self._look(script, lambda found: [part(text) for text in found] == wanted, wanted)

    async def expect_text(self, selector: str, *parts: str) -> None:
        """Wait until the first such element has all these parts in its text."""
        script = f"document.querySelector({json.dumps(selector)}).textContent"
        await self._look(script, lambda found: all(part in found for part in parts), parts)

    async def _look(self, script: str, is_wanted: Callable[[Any], bool], wanted: object) -> Any:
        found: object = None
        for _ in range(int(PATIENCE / LOOK_SECONDS)):
            try:
                if is_wanted(found := await self.run(script)):
                    return found
            except ScriptError as error:
                if "SyntaxError" in str(error):
                    raise
                found = error
            except (LookupError, TypeError, ValueError) as error:  # what was found is not of that form yet
                found = (found, error)
            await asyncio.sleep(LOOK_SECONDS)
        raise AssertionError(f"wanted: {wanted!r}\nfound:  {found!r}\nwith:   {script}")

    async def frames(self) -> None:
        """Wait until what was asked for is laid out and drawn."""
        await self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))")

    async def open(self, url: str) -> None:
        """Go there, and wait for the first drawing: of the data of a view that asks for rows there may be none yet."""
        await self.run("window.isLeft = true")
        await self.send("Page.navigate", url=url)
        await self.until(
            "!window.isLeft && document.readyState === 'complete' && document.documentElement.dataset.app === 'on'"
        )
        shown = ".podpage, .item, .bill:not([hidden]), .fit:not([hidden]), .pending:not([hidden]), .empty:not([hidden])"
        await self.until(f"document.querySelector('{shown}') !== null")

    async def size(self, width: int, height: int, *, scale: float = 1.0) -> None:
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )
        await self.frames()

    async def scheme(self, name: str) -> None:
        features = [
            {"name": "prefers-color-scheme", "value": name},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        await self.send("Emulation.setEmulatedMedia", features=features)

    async def press(self, key: str, *, text: str = "", code: int = 0) -> None:
        for kind in ("keyDown", "keyUp"):
            await self.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                text=text if kind == "keyDown" else "",
                windowsVirtualKeyCode=code,
            )

    async def shot(self) -> bytes:
        """What is on the screen, as PNG."""
        return base64.b64decode((await self.send("Page.captureScreenshot", format="png"))["data"])

    async def text(self, selector: str) -> str:
        return str(await self.run(f"document.querySelector({json.dumps(selector)})?.textContent ?? ''"))

    async def texts(self, selector: str) -> list[str]:
        return list(await self.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)"))

    async def _read(self) -> None:
        async for message in self._socket:
            if message.type is WSMsgType.TEXT:
                self._take(json.loads(message.data))

    def _take(self, said: Any) -> None:
        if "id" in said:
            future = self._answers.pop(said["id"])
            if future.done():
                pass  # nobody waits any longer
            elif "error" in said:
                future.set_exception(ScriptError(said["error"]["message"]))
            else:
                future.set_result(said["result"])
        elif (note := _NOTES.get(said["method"])) is not None:
            note(self, said["params"])


def _thrown(page: Page, params: Any) -> None:
    page.complaints.append(json.dumps(params["exceptionDetails"])[:500])


def _logged(page: Page, params: Any) -> None:
    entry = params["entry"]
    if entry["level"] == "error" and entry["source"] != "network":
        page.complaints.append(entry["text"])


def _asked(page: Page, params: Any) -> None:
    page.requests.append(params["request"]["url"])


def _trace(page: Page, params: Any) -> None:
    page.trace += params["value"]


def _traced(page: Page, _: Any) -> None:
    page.traced.set()


_NOTES: dict[str, Callable[[Page, Any], None]] = {
    "Runtime.exceptionThrown": _thrown,
    "Log.entryAdded": _logged,
    "Network.requestWillBeSent": _asked,
    "Tracing.dataCollected": _trace,
    "Tracing.tracingComplete": _traced,
}


@asynccontextmanager
async def browser() -> AsyncIterator["Browser"]:
    assert PROGRAM is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            PROGRAM,
            *_FLAGS,
            f"--user-data-dir={profile}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            assert process.stderr is not None
            address = await _address(process.stderr)
            drain = asyncio.create_task(process.stderr.read())  # a full pipe would hold it up
            async with ClientSession() as session:
                yield Browser(session, address)
            drain.cancel()
        finally:
            process.terminate()
            await process.wait()


async def _address(stderr: asyncio.StreamReader) -> str:
    async with asyncio.timeout(PATIENCE):
        while line := (await stderr.readline()).decode():
            if "DevTools listening on " in line:
                return line.split("ws://")[1].split("/")[0]
    raise AssertionError("chromium did not start")


class Browser:
    def __init__(self, session: ClientSession, address: str) -> None:
        self._session = session
        self._address = address

    @asynccontextmanager
    async def page(self, width: int = 1280, height: int = 900) -> AsyncIterator[Page]:
        async with self._session.put(f"http://{self._address}/json/new?about:blank") as answer:
            target = await answer.json()
        async with self._session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            page = Page(socket)
            for domain in ("Page", "Runtime", "Log", "Network"):
                await page.send(f"{domain}.enable")
            await page.size(width, height)
            await page.scheme("light")
            try:
                yield page
            finally:
                async with self._session.get(f"http://{self._address}/json/close/{target['id']}"):
                    pass
