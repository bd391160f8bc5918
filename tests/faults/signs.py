"""The ways in which a page names a fault. Each returns what a `Play` shows."""

from collections.abc import Callable

from tests.faults.page import Page
from tests.faults.play import Sign


def part_down(source: str, reason: str) -> Sign:
    """The part is down for this reason, which is counted, and the agent as a whole is not up."""

    def sign(now: Page, before: Page) -> bool:
        return (
            now.value("podgpu_source_problem", source=source, reason=reason) == 1
            and now.value("podgpu_source_up", source=source) == 0
            and now.errors(source, reason) > before.errors(source, reason)
            and now.value("podgpu_up") == 0
        )

    return sign


def card_down(gpu: int, reason: str, source: str = "nvml") -> Sign:
    """The card is down for this reason, which is counted, and all others are up."""

    def sign(now: Page, before: Page) -> bool:
        ups = {labels["gpu"]: value for labels, value in now.by_name.get("podgpu_gpu_up", ())}
        return (
            now.total("podgpu_gpu_problem", gpu=str(gpu), reason=reason) == 1
            and now.errors(source, reason) > before.errors(source, reason)
            and ups.pop(str(gpu), None) == 0
            and bool(ups)
            and all(ups.values())
        )

    return sign


def cards_down(reason: str, source: str = "nvml") -> Sign:
    """Every card is down for this reason, which is counted."""

    def sign(now: Page, before: Page) -> bool:
        ups = now.values("podgpu_gpu_up")
        return (
            now.total("podgpu_gpu_problem", reason=reason) == len(ups) > 0
            and not any(ups)
            and now.errors(source, reason) > before.errors(source, reason)
        )

    return sign


def counted(source: str, reason: str) -> Sign:
    """The fault costs no part, but it is counted."""
    return lambda now, before: now.errors(source, reason) > before.errors(source, reason)


def survived(proof: Callable[[Page], bool]) -> Sign:
    """Nothing is wrong for the user, and this proves it: the agent is up, and the page says what it should."""
    return lambda now, _: now.value("podgpu_up") == 1 and proof(now)


def both(*signs: Sign) -> Sign:
    return lambda now, before: all(sign(now, before) for sign in signs)


def either(*signs: Sign) -> Sign:
    return lambda now, before: any(sign(now, before) for sign in signs)
