"""Everything has a name when it is pointed at, and keys reach it."""

import json
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.browser.chromium import Browser
from tests.browser.stage import Script, demo_document, staged

pytestmark = pytest.mark.asyncio(loop_scope="package")

TIP = "document.querySelector('.tip:not([hidden])')?.textContent ?? ''"
FOCUSED = "document.activeElement.closest('.gpu')?.querySelector('.number').textContent"
# Segments that can be seen.
SEGMENTS = """[...document.querySelectorAll('.list .gpu .seg:not(.free)')]
    .filter(one => one.getBoundingClientRect().width >= 1).map(one => one.dataset.tip ?? '')"""


def point_at(selector: str) -> str:
    return f"document.querySelector('{selector}').dispatchEvent(new PointerEvent('pointerover', {{bubbles: true}}))"


async def test_every_segment_has_a_name_for_the_mouse_and_the_keyboard(chromium: Browser) -> None:
    async with staged(Script(await demo_document())) as url, chromium.page(1280, 2000) as page:
        await page.open(url)
        await page.until(f"(tips => tips.length > 20 && tips.every(Boolean))({SEGMENTS})")
        for bar in ("memory", "busy", "power"):
            await page.run(point_at(f".list .{bar} .seg"))
            await page.expect(TIP, await page.run(f"document.querySelector('.list .{bar} .seg').dataset.tip"))
        await page.press("Escape", code=27)
        await page.expect(TIP, "")
        await page.run("document.querySelector('.list .number').focus({focusVisible: true})")
        await page.until(f"({TIP}).includes('GPU 0 of')")
        assert page.complaints == []


async def test_arrows_move_between_cards_and_a_question_mark_lists_the_keys(chromium: Browser) -> None:
    async with staged(Script(await demo_document())) as url, chromium.page() as page:
        await page.open(url)
        await page.run("document.querySelector('.list .number').focus()")
        for key, number in (("ArrowDown", "1"), ("ArrowDown", "2"), ("ArrowUp", "1")):
            await page.press(key, code=40 if key == "ArrowDown" else 38)
            await page.expect(FOCUSED, number)
        await page.press("?", text="?", code=191)
        await page.until("document.querySelector('dialog.help').open")
        await page.press("Escape", code=27)
        await page.until("!document.querySelector('dialog.help').open")
        assert page.complaints == []


async def test_problems_are_counted_in_the_title_and_the_icon_and_can_be_filtered(chromium: Browser) -> None:
    document = await demo_document()
    card = document["cards"][2]
    card["readings"] += [{"metric": "xid_last_code", "value": 79.0}]
    script = Script(document)
    number = sum(1 + problem["more"] for problem in script.state["insight"]["problems"])
    async with staged(script) as url, chromium.page() as page:
        await page.open(url)
        await page.until(f"document.title.startsWith('({number}) ')")
        await page.until("document.querySelector('link[rel=icon]').href.startsWith('data:image/svg+xml')")
        await page.open(f"{url}?state=xid")
        await page.expect_texts(".list .gpu .number", ["2"])
        assert page.complaints == []


async def test_the_legend_names_every_namespace(chromium: Browser) -> None:
    document = await demo_document()
    names = {tenant["container"]["namespace"] for card in document["cards"] for tenant in card["tenants"]} - {""}
    async with staged(Script(document)) as url, chromium.page() as page:
        await page.open(url)
        legend = "[...document.querySelectorAll('.legend li')].map(e => e.textContent)"
        await page.until(f"{sorted(names)}.every(name => {legend}.includes(name))")


def words_of(command: str, folder: Path) -> list[str]:
    """Return the words that podgpu is given if bash runs the command, which must do nothing else."""
    script = "podgpu() { printf '%s\\0' \"$@\"; }\n" + command
    done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=True)
    assert not list(folder.iterdir())
    return done.stdout.split("\0")[:-1]


@pytest.mark.parametrize(
    "name",
    [
        "pretrain-0",
        "$(touch owned)",
        "`touch owned`",
        "a;touch owned",
        "it's",
        "two words",
        "a\x1b[201~\ntouch owned\n",
    ],
)
async def test_a_copied_command_is_one_that_a_shell_takes_as_it_is(
    chromium: Browser, name: str, tmp_path: Path
) -> None:
    """Names may come from anybody's page. A control character could end the paste."""
    document = await demo_document()
    text = json.dumps(document).replace("pretrain-0", json.dumps(name)[1:-1])
    copied = "document.querySelector('.commands li:last-child button')?.dataset.copy ?? ''"
    async with staged(Script(json.loads(text))) as url, chromium.page() as page:
        await page.open(f"{url}?pod={quote(f'research/{name}', safe='')}")
        await page.until(f"({copied}).startsWith('podgpu why ')")
        command = str(await page.run(copied))
    assert not set(command) & set(map(chr, range(32)))
    shown = "".join("\ufffd" if ord(letter) < 32 else letter for letter in name)
    assert words_of(command, tmp_path) == ["why", f"research/{shown}"]


async def test_keys_leave_the_page_alone_while_their_list_is_open(chromium: Browser) -> None:
    async with staged(Script(await demo_document())) as url, chromium.page() as page:
        await page.open(f"{url}?pod=research%2Fpretrain-0")
        await page.press("?", text="?", code=191)
        await page.until("document.querySelector('dialog.help').open")
        await page.press("w", text="w", code=87)
        await page.press("Escape", code=27)
        await page.until("!document.querySelector('dialog.help').open")
        assert await page.run("location.search") == "?pod=research%2Fpretrain-0"


async def test_a_card_without_a_number_has_none_anywhere(chromium: Browser) -> None:
    document = await demo_document()
    document["cards"][6]["gpu"]["index"] = -1
    async with staged(Script(document)) as url, chromium.page() as page:
        await page.open(url)
        await page.expect_texts(".list .gpu .number", ["?", *"0123457"])
        assert (await page.run("document.querySelector('.list .number').dataset.tip")).startswith("GPU ? of ")
        await page.open(f"{url}?gpu={document['cards'][6]['gpu']['uuid']}")
        await page.expect_texts(".gpupage .bars .number", ["?"])
        assert "GPU -1" not in await page.run("document.body.textContent")
