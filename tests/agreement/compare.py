"""Asks every surface of one cluster."""

from podgpu.model import Cluster
from tests.agreement import browser, surfaces
from tests.agreement.facts import Line, compared
from tests.browser.chromium import Browser


async def lines_of(cluster: Cluster, chromium: Browser) -> list[Line]:
    return compared(surfaces.all_of(cluster) | await browser.said(chromium, cluster))
