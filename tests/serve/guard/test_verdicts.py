import asyncio

import pytest

from podgpu.serve.guard.verdicts import MOST_KEPT, Busy, Verdicts


class Check:
    def __init__(self, verdict: str = "good") -> None:
        self.verdict = verdict
        self.calls = 0
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self) -> str:
        self.calls += 1
        await self.go.wait()
        return self.verdict


def verdicts(most: int = 4, each: int = 2) -> Verdicts[str]:
    return Verdicts(lambda verdict: 60.0 if verdict == "good" else 5.0, most=most, each=each)


async def test_a_flood_of_bad_ones_displaces_no_good_one() -> None:
    kept, good, bad = verdicts(), Check(), Check("bad")
    await kept.on(("good",), "a", good)
    for number in range(2 * MOST_KEPT):
        assert await kept.on((str(number),), "b", bad) == "bad"
    assert await kept.on(("good",), "a", good) == "good"
    assert good.calls == 1
    assert len(kept._kept) == MOST_KEPT


async def test_checks_are_bounded_for_one_client_and_for_all() -> None:
    kept, check = verdicts(), Check()
    check.go.clear()
    shown = [("1", "a"), ("2", "a"), ("3", "b"), ("4", "b")]
    running = [asyncio.create_task(kept.on((secret,), client, check)) for secret, client in shown]
    await asyncio.sleep(0)
    for client in ("a", "c"):
        with pytest.raises(Busy):
            await kept.on(("5",), client, check)
    check.go.set()
    assert await asyncio.gather(*running) == ["good"] * 4
    assert await kept.on(("5",), "a", check) == "good"


async def test_one_client_leaves_room_for_others() -> None:
    kept, check = verdicts(), Check()
    check.go.clear()
    running = [asyncio.create_task(kept.on((secret,), "a", check)) for secret in ("1", "2")]
    await asyncio.sleep(0)
    with pytest.raises(Busy):
        await kept.on(("3",), "a", check)
    running.append(asyncio.create_task(kept.on(("3",), "b", check)))
    await asyncio.sleep(0)
    check.go.set()
    assert await asyncio.gather(*running) == ["good"] * 3


async def test_what_was_shown_is_not_confused() -> None:
    kept = verdicts()
    assert await kept.on(("a", "bc"), "x", Check("good")) == "good"
    assert await kept.on(("ab", "c"), "x", Check("bad")) == "bad"


async def test_a_check_that_fails_is_not_kept_and_frees_its_place() -> None:
    async def broken() -> str:
        raise OSError("no answer")

    kept = verdicts(most=1)
    for _ in range(3):
        with pytest.raises(OSError, match="no answer"):
            await kept.on(("a",), "x", broken)
    assert await kept.on(("a",), "x", Check()) == "good"


async def test_a_client_that_leaves_takes_nobody_elses_verdict_along() -> None:
    kept, check = verdicts(), Check()
    check.go.clear()
    first, second = (asyncio.create_task(kept.on(("a",), "x", check)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    check.go.set()
    assert await second == "good"
    assert check.calls == 1
