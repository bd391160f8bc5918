"""Reads how a user wants cards to be divided."""

import re

from podgpu.catalog.mig_profiles import CARDS as MIG_CARDS
from podgpu.errors import UserError
from podgpu.model.fit_plan import CARDS, MIG, PORTIONS, TIME_SLICES, PlanLayout

MOST_SLICES = 48  # of a card: more clients than that a card does not have
WORDS = "mig, mig:1g.18gb,3g.71gb, timeslice:4, parts, cards:80 or cards:-20%"


def layout_of(text: str) -> PlanLayout:
    """Raises UserError if there is no such layout."""
    kind, _, rest = text.strip().partition(":")
    if kind == MIG:
        return _mig(text, rest)
    if kind == TIME_SLICES and rest.isdecimal() and 2 <= int(rest) <= MOST_SLICES:
        return PlanLayout(kind=kind, text=text, number=int(rest))
    if kind == PORTIONS and not rest:
        return PlanLayout(kind=kind, text=text)
    if kind == CARDS and rest.isdecimal() and int(rest):
        return PlanLayout(kind=kind, text=text, number=int(rest))
    fewer = re.fullmatch(r"-(\d+(?:\.\d+)?)%", rest)
    if kind == CARDS and fewer and 0 < float(fewer[1]) < 100:
        return PlanLayout(kind=kind, text=text, fewer=float(fewer[1]) / 100)
    raise UserError(f"--plan={text} is no layout; give {WORDS}")


def _mig(text: str, rest: str) -> PlanLayout:
    names = tuple(name for name in re.split(r"[,\s]+", rest) if name)
    known = {profile.name for card in MIG_CARDS for profile in card.profiles}
    unknown = next((name for name in names if name not in known), None)
    if unknown:
        raise UserError(f"--plan={text}: no card has a MIG profile {unknown}; give names such as 1g.18gb")
    return PlanLayout(kind=MIG, text=text, profiles=names)
