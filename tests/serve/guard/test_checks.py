import asyncio
from contextlib import suppress

import pytest

from podgpu.serve.guard.checks import (
    MOST_CLIENTS,
    MOST_KEPT,
    CheckLimits,
    CredentialChecks,
    Rate,
    RateLimiter,
    TooManyChecks,
)
from tests.patience import PATIENCE


class Check:
    def __init__(self, result: str = "good") -> None:
        self.result = result
        self.calls = 0
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self) -> str:
        self.calls += 1
        await self.go.wait()
        return self.result


def checks(
    most: int = 4,
    each: int = 2,
    *,
    familiar: int = 2,
    rate: float = 1e6,
    total: float = 1e6,
    at_once: int = 4,
) -> CredentialChecks[str]:
    limits = CheckLimits(
        most=most,
        each=each,
        familiar=familiar,
        at_once=at_once,
        rate=Rate(rate, 0.0),
        total=Rate(total, 0.0),
    )
    return CredentialChecks(_seconds, is_good=lambda result: result == "good", limits=limits)


def _seconds(result: str) -> float:
    return {"good": 1200.0, "brief": 0.0}.get(result, 600.0)


async def test_a_flood_of_bad_ones_displaces_no_good_one() -> None:
    kept, good, bad = checks(), Check(), Check("bad")
    await kept.result(("good",), "a", good)
    for number in range(2 * MOST_KEPT):
        assert await kept.result((str(number),), "b", bad) == "bad"
    assert await kept.result(("good",), "a", good) == "good"
    assert good.calls == 1
    assert len(kept._kept) == MOST_KEPT


async def test_checks_are_bounded_for_one_client_and_for_all() -> None:
    kept, check = checks(), Check()
    check.go.clear()
    shown = [("1", "a"), ("2", "b"), ("3", "c"), ("4", "d")]
    running = [asyncio.create_task(kept.result((secret,), client, check)) for secret, client in shown]
    await asyncio.sleep(0)
    for client in ("a", "e"):
        with pytest.raises(TooManyChecks):
            await kept.result(("5",), client, check)
    check.go.set()
    assert await asyncio.gather(*running) == ["good"] * 4
    assert await kept.result(("5",), "a", check) == "good"


async def test_one_client_leaves_room_for_others() -> None:
    kept, check = checks(), Check()
    assert await kept.result(("0",), "a", Check("bad")) == "bad"
    check.go.clear()
    running = [asyncio.create_task(kept.result((secret,), "a", check)) for secret in ("1", "2")]
    await asyncio.sleep(0)
    with pytest.raises(TooManyChecks):
        await kept.result(("3",), "a", check)
    running.append(asyncio.create_task(kept.result(("3",), "b", check)))
    await asyncio.sleep(0)
    check.go.set()
    assert await asyncio.gather(*running) == ["good"] * 3


async def test_what_was_shown_is_not_confused() -> None:
    kept = checks()
    assert await kept.result(("a", "bc"), "x", Check("good")) == "good"
    assert await kept.result(("ab", "c"), "x", Check("bad")) == "bad"


async def test_a_check_that_fails_is_not_kept_and_frees_its_place() -> None:
    async def broken() -> str:
        raise OSError("no answer")

    kept = checks(most=1)
    for _ in range(3):
        with pytest.raises(OSError, match="no answer"):
            await kept.result(("a",), "x", broken)
    assert await kept.result(("a",), "x", Check()) == "good"


async def test_a_client_that_leaves_takes_no_other_clients_result_along() -> None:
    kept, check = checks(), Check()
    check.go.clear()
    first, second = (asyncio.create_task(kept.result(("a",), "x", check)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    check.go.set()
    assert await second == "good"
    assert check.calls == 1


class Renewed(CredentialChecks[str]):
    """Good results hold for no time, so that each is checked again."""

    def __init__(self, **limits: int) -> None:
        usual = {"most": 4, "each": 2, "familiar": 2, "at_once": 1, **limits}
        rates = CheckLimits(rate=Rate(5, 0.0), total=Rate(8, 0.0), **usual)
        super().__init__(
            lambda result: 0.0 if result == "good" else 600.0,
            is_good=lambda result: result == "good",
            limits=rates,
        )


async def test_what_was_right_before_is_checked_before_all_others() -> None:
    kept, slow = Renewed(), Check("bad")
    assert await kept.result(("mine",), "home", Check()) == "good"
    slow.go.clear()
    others = [asyncio.create_task(kept.result((str(n),), f"address-{n}", slow)) for n in range(4)]
    await asyncio.sleep(0)
    with pytest.raises(TooManyChecks):
        await kept.result(("new",), "elsewhere", Check())  # four are new already
    async with asyncio.timeout(PATIENCE):
        for _ in range(20):
            assert await kept.result(("mine",), "anywhere", Check()) == "good"
        assert await kept.result(("changed",), "home", Check()) == "good", "an address that has logged in before"
    slow.go.set()
    assert await asyncio.gather(*others) == ["bad"] * 4
    assert slow.calls == 4


async def test_an_address_and_all_strangers_have_a_budget_and_what_is_right_costs_nothing() -> None:
    kept, bad = Renewed(), Check("bad")
    for number in range(20):
        assert await kept.result(("mine", str(number)), "good", Check()) == "good"
    refused = []
    for number in range(20):
        try:
            await kept.result((str(number),), "a" if number < 10 else "b", bad)
        except TooManyChecks:
            refused.append(number)
    assert bad.calls == 10, "five of each address, of which the first is new, and eight of all suspects"
    assert refused == [*range(5, 10), *range(15, 20)]
    for number in range(20, 26):
        with suppress(TooManyChecks):
            await kept.result((str(number),), "c", bad)
    assert bad.calls == 11, "the first of another address, and no more of suspects"
    assert await kept.result(("0",), "d", bad) == "bad", "what was refused is known without a check"
    assert await kept.result(("mine", "new"), "good", Check()) == "good"
    assert bad.calls == 11


async def test_who_comes_for_the_first_time_gets_in_beside_those_who_guess() -> None:
    kept, bad, slow = Renewed(), Check("bad"), Check("bad")
    for number in range(4):
        await kept.result((str(number),), f"address-{number}", bad)
    slow.go.clear()
    guessing = [asyncio.create_task(kept.result((f"slow {number}",), f"address-{number}", slow)) for number in range(4)]
    await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE):
        assert await kept.result(("mine",), "home", Check()) == "good"
    slow.go.set()
    assert await asyncio.gather(*guessing) == ["bad"] * 4


def test_a_budget_fills_again_and_forgets_addresses() -> None:
    budget = RateLimiter(Rate(2, 0.5), Rate(100, 100.0))
    took = [budget.take("a", now, "all") for now in (0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 100.0, 100.0, 100.0)]
    assert took == [True, True, False, False, True, False, True, True, False]
    for number in range(2 * MOST_CLIENTS):
        budget.take(str(number), 101.0)
    assert len(budget._clients) == MOST_CLIENTS
