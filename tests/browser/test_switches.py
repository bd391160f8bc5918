"""What the page says where the driver's log of context switches is read."""

import copy

import pytest

from tests.browser.chromium import Browser
from tests.browser.stage import Document, Script, cluster_of, demo_document, staged

pytestmark = pytest.mark.asyncio(loop_scope="package")

TIME_SLICED = 4  # the demo's card with a log


async def losing(ratio: float) -> Document:
    """The demo, with so much of the card's time lost between two tenants."""
    changed = copy.deepcopy(await demo_document())
    changed["cards"][TIME_SLICED]["balance"]["switching_peak_ratio"] = ratio
    return changed


async def test_a_card_that_loses_much_to_switching_is_an_alert_that_comes_and_goes(chromium: Browser) -> None:
    script = Script(await losing(0.26))
    async with staged(script) as url, chromium.page() as page:
        await page.open(url)
        await page.run("document.querySelector('.more')?.click()")
        alerts = (
            "[...document.querySelectorAll('.alert:not(.gone)')].map(e => e.textContent)"
            ".filter(e => e.includes('Switching'))"
        )
        (alert,) = await page.until(f"(found => found.length && found)({alerts})")
        assert f"GPU {TIME_SLICED} spends up to 26% of its time on context switches" in alert
        assert "with MPS or MIG" in alert
        script.publish(await losing(0.01))
        await page.expect(alerts, [])
        assert page.complaints == []


async def test_a_pod_shows_how_long_it_was_on_the_card(chromium: Browser) -> None:
    document = await losing(0.0)
    tenants = document["cards"][TIME_SLICED]["tenants"]
    assert all("resident_us" in tenant["booking"] for tenant in tenants)
    first, other = tenants[0], document["cards"][0]["tenants"][0]
    first["booking"]["resident_us"] = 754_000_000
    cluster = cluster_of(document, 1)
    for told, suffix in ((document, ""), (cluster, "-0")):
        async with staged(Script(told)) as url, chromium.page() as page:
            for tenant, shows in ((first, True), (other, False)):
                pod = f"{tenant['container']['namespace']}/{tenant['container']['pod']}{suffix}"
                await page.open(f"{url}?pod={pod}")
                await page.expect_text(".podpage:has(.facts) h2", pod)
                facts = await page.text(".podpage")
                assert ("On the card" in facts) is shows
                assert ("by the driver's log of context switches" in facts) is shows
                assert ("13 min" in facts or "12 min" in facts) is shows
