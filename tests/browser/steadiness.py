"""What a page did while somebody looked at it: how far things moved, what it holds, and where the focus is."""

from tests.browser.chromium import Page

# The browser's own measure of layout shifts: the worst five seconds, and all of them together.
WATCH = """
window.shifts = [];
new PerformanceObserver(list => {
  for (const entry of list.getEntries()) {
    if (entry.hadRecentInput) continue;
    const what = entry.sources.map(one => one.node?.className ?? one.node?.nodeName ?? '').join(', ');
    shifts.push([entry.startTime, entry.value, what]);
  }
}).observe({ type: 'layout-shift', buffered: true });
window.blurs = 0;
addEventListener('focusout', event => { if (!event.relatedTarget) window.blurs += 1; }, true);
"""
MOST_SHIFT = 0.1  # what counts as good
GAP_MS, SPAN_MS = 1000, 5000


async def watch(page: Page) -> None:
    """Before the page is opened."""
    await page.send("Page.addScriptToEvaluateOnNewDocument", source=WATCH)


async def shift(page: Page) -> tuple[float, float, list[str]]:
    """The worst window of shifts, their sum, and what moved."""
    found = await page.run("shifts")
    worst = window = 0.0
    start = last = float("-inf")
    for at, value, _ in found:
        if at - last > GAP_MS or at - start > SPAN_MS:
            window, start = 0.0, at
        window, last = window + value, at
        worst = max(worst, window)
    largest = sorted(found, key=lambda entry: -entry[1])[:5]
    return worst, sum(value for _, value, _ in found), [f"{value:.4f} {what}" for _, value, what in largest]


async def heap_mib(page: Page) -> float:
    await page.send("HeapProfiler.collectGarbage")
    return float((await page.send("Runtime.getHeapUsage"))["usedSize"]) / 2**20
