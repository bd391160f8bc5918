"""Two cameras do the same work. Samples alone book one many times its share; checks of the log put the other right."""

import re

import pytest
import pytest_asyncio

from podgpu.insight import certainty
from podgpu.model import Card, Snapshot, Tenant
from podgpu.sources.simulator.scenario import CAMERA, CARDS
from podgpu.sources.simulator.timeline import CardTimeline, ReadingWindow
from podgpu.views.table import table
from podgpu.views.why import why
from tests.sources.simulator.clocked_agent import cycles

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECONDS = 190  # the third minute is over
SAMPLED, CHECKED = (card for card in CARDS if any(process.keeps_time for process in card.processes))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def snapshot() -> Snapshot:
    return [agent.snapshot async for agent in cycles(5.0, SECONDS)][-1]


def camera(card: Card) -> Tenant:
    return next(tenant for tenant in card.tenants if tenant.container.pod.startswith("camera-"))


async def test_both_do_the_same_work() -> None:
    assert (SAMPLED.checks_switches, CHECKED.checks_switches) == (False, True)
    for card in (SAMPLED, CHECKED):
        (own,) = [
            activity
            for activity in CardTimeline(card, seed=1).activities(ReadingWindow(0, SECONDS))
            if activity.process.keeps_time
        ]
        assert own.load == pytest.approx(CAMERA.busy, abs=0.01)
        assert own.named_load > 4 * own.load


async def test_samples_alone_book_a_camera_many_times_its_share_and_say_that_they_may(snapshot: Snapshot) -> None:
    card = snapshot.cards[SAMPLED.index]
    tenant = camera(card)
    use = tenant.use
    assert use and use.ratio and card.use and card.use.ratio and tenant.booking.band
    assert use.ratio > 4 * CAMERA.busy
    assert (tenant.booking.method, use.certainty, tenant.booking.band.rests_on) == ("measured", "estimated", "samples")
    assert use.least == 0.0 and use.most == pytest.approx(card.use.ratio)
    assert card.use.note.startswith(certainty.DIVIDED)


async def test_checks_put_a_camera_right_and_say_how_far_off_its_samples_are(snapshot: Snapshot) -> None:
    card = snapshot.cards[CHECKED.index]
    tenant = camera(card)
    use, sampling = tenant.use, tenant.booking.sampling
    assert use and use.likely_least is not None and use.likely_most is not None and tenant.booking.band and sampling
    assert use.ratio == pytest.approx(CAMERA.busy, abs=0.03)
    assert use.likely_least <= CAMERA.busy * 0.95 and use.likely_most < 3 * CAMERA.busy
    assert (tenant.booking.method, use.certainty, tenant.booking.band.rests_on) == ("checked", "estimated", "checks")
    assert card.use and not card.use.note
    assert sampling.found == "oversampled"
    assert sampling.named_ratio > 8 * sampling.resident_ratio
    found = {each.container.pod: each.booking.sampling.found for each in card.tenants if each.booking.sampling}
    assert found == {"camera-1": "oversampled", "asr-0": "undersampled"}


async def test_a_reader_sees_the_difference(snapshot: Snapshot) -> None:
    text = table(snapshot, 80, colour=False)
    first, second = (line for line in text.splitlines() if line.endswith(("measured", "checked")) and "vision/" in line)
    assert "measured" in first and "(~" in first
    assert "checked" in second and "(~" in second
    below = text[text.index(second) :].splitlines()[1]
    assert re.fullmatch(r" +oversampled: on the GPU \d%, sampled \d\d%", below)
    assert "oversampled" not in text[: text.index(second)]
    assert "samples" in (why(snapshot, "vision", "camera-0", 100) or "")
