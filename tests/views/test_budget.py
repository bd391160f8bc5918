from hypothesis import given
from hypothesis import strategies as st

from podgpu.catalog.row import Kind, Worth
from podgpu.views.budget import fit
from podgpu.views.series import Family, Labels, count


def family(name: str, worth: Worth, size: int) -> Family:
    return Family(name, Kind.GAUGE, "", worth, {(Labels(("i",), (str(i),)),): 1.0 for i in range(size)})


def names(families: list[Family]) -> list[str]:
    return [one.name for one in families]


def test_a_page_within_its_budget_is_left_alone() -> None:
    page = [family("a", Worth.DETAIL, 3), family("b", Worth.VITAL, 2)]
    assert fit(page, 5) == (page, {})


def test_the_least_valuable_goes_first_and_the_order_stays() -> None:
    page = [
        family("vital", Worth.VITAL, 5),
        family("detail", Worth.DETAIL, 2),
        family("core", Worth.CORE, 5),
        family("useful", Worth.USEFUL, 4),
    ]
    kept, dropped = fit(page, 12)
    assert names(kept) == ["vital", "core"]
    assert dropped == {"detail": 2, "useful": 4}


def test_the_largest_of_equal_worth_goes_first() -> None:
    page = [
        family("small", Worth.USEFUL, 2),
        family("large", Worth.USEFUL, 6),
        family("middle", Worth.USEFUL, 4),
    ]
    kept, dropped = fit(page, 7)
    assert names(kept) == ["small", "middle"]
    assert dropped == {"large": 6}


def test_a_family_is_cut_whole_even_if_less_would_do() -> None:
    kept, dropped = fit([family("one", Worth.VITAL, 10)], 9)
    assert kept == []
    assert dropped == {"one": 10}


PAGES = st.lists(st.tuples(st.sampled_from(Worth), st.integers(0, 9)), max_size=12).map(
    lambda shapes: [family(f"f{i}", worth, size) for i, (worth, size) in enumerate(shapes)]
)


@given(PAGES, st.integers(0, 60))
def test_the_budget_is_never_exceeded_and_nothing_is_lost_uncounted(page: list[Family], limit: int) -> None:
    kept, dropped = fit(page, limit)
    assert count(kept) <= limit
    assert count(kept) + sum(dropped.values()) == count(page)
    worth = {one.name: one.worth.value for one in page}
    lowest_kept = min((one.worth.value for one in kept if one.samples), default=Worth.VITAL.value)
    assert all(worth[name] <= lowest_kept for name in dropped)
