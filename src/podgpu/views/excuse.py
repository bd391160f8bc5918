"""Who has a card for others and pays for none of it, in words, with the proof."""

from collections.abc import Iterable

from podgpu.model import Card, Excused
from podgpu.views.tenant import full_name
from podgpu.views.text import line


def excuses(cards: Iterable[Card]) -> list[str]:
    return [
        f"{line(one.role)} {_who(one)} on GPU {card.gpu.index}: {line(one.proof)}"
        for card in cards
        for one in card.excused
    ]


def _who(one: Excused) -> str:
    pid = [] if one.pid is None else [f"PID {one.pid}"]
    return " in ".join([*pid, *([full_name(one.container)] if one.container else [])])
