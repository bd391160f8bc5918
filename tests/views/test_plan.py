"""What `podgpu fit --plan` says above its table."""

import pytest

from podgpu.model.fit import MIG, PlanLayout, PlanPool, PlanStatement
from podgpu.views.plan import plan_heading


@pytest.mark.parametrize(
    ("cards", "least", "said"),
    [
        (5, 5, "plan mig: 5 cards needed, there are 8; no plan needs fewer than 5"),
        (9, 9, "plan mig: 9 cards needed, there are only 8; no plan needs fewer than 9"),
        (3, 5, "plan mig: 3 cards used, there are 8; too few: no plan needs fewer than 5"),
    ],
)
def test_the_heading_says_how_many_cards_are_needed_and_there(cards: int, least: int, said: str) -> None:
    pool = PlanPool(
        cluster="",
        model="H200",
        replicas=9,
        whole=0,
        cards_now=8,
        cards=cards,
        least_cards=least,
        above_least=0.0,
        solver="",
        full_minutes=0,
        slower_minutes_least=0,
        slower_minutes_most=0,
        free_ratio=0.0,
        useless_ratio=0.0,
    )
    plan = PlanLayout(kind=MIG, text="mig")
    assert plan_heading(PlanStatement(start=0.0, end=60.0, plan=plan, pools=(pool,)))[1] == said
