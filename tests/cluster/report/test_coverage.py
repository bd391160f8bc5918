"""How much of each GPU's time was seen."""

from podgpu.cluster.report.counters import CardKey
from podgpu.cluster.report.coverage import GpuEvidence, coverage
from podgpu.cluster.report.increases import CardPresence

HOUR = 3600.0
PERIOD = (0.0, 24 * HOUR)
CARD = CardKey("", "alpha", "GPU-1")
SAME_ELSEWHERE = CardKey("", "beta", "GPU-1")


def hours(card: CardKey, presence: dict[CardKey, CardPresence], **evidence: object) -> tuple[float, ...]:
    found = coverage(PERIOD, presence, GpuEvidence(**evidence))[card].total  # type: ignore[arg-type]
    assert found.seen_us + found.unseen_us + found.absent_us == 24 * HOUR * 1e6
    return tuple(each / HOUR / 1e6 for each in (found.seen_us, found.unseen_us, found.absent_us))


def seen(first: float, last: float, *gaps: tuple[float, float]) -> CardPresence:
    return CardPresence(first * HOUR, last * HOUR, 30.0, [(begin * HOUR, end * HOUR) for begin, end in gaps])


def test_a_card_that_is_scraped_throughout_is_seen() -> None:
    assert hours(CARD, {CARD: seen(0, 24)}) == (24, 0, 0)


def test_the_moments_between_two_scrapes_at_the_edges_are_no_gap() -> None:
    assert hours(CARD, {CARD: seen(30 / HOUR, 24 - 30 / HOUR)}) == (24, 0, 0)


def test_an_agent_that_was_off_leaves_a_gap() -> None:
    assert hours(CARD, {CARD: seen(0, 24, (6, 12))}) == (18, 6, 0)


def test_without_kube_state_metrics_a_card_is_missed_before_its_first_and_after_its_last_scrape() -> None:
    assert hours(CARD, {CARD: seen(4, 20)}) == (16, 8, 0)


def test_a_node_that_came_late_and_left_early_is_not_missed_when_it_was_not_there() -> None:
    times = {("", "alpha"): [(3 * HOUR, 21 * HOUR)]}
    assert hours(CARD, {CARD: seen(4, 20)}, node_times=times) == (16, 2, 6)


def test_a_machine_without_kubernetes_is_missed_although_the_store_has_nodes_of_kubernetes() -> None:
    assert hours(CARD, {CARD: seen(4, 20)}, node_times={("", "beta"): [PERIOD]}) == (16, 8, 0)


def test_a_node_that_was_there_for_a_short_time_is_not_missed() -> None:
    assert hours(CARD, {CARD: seen(4, 5)}, node_times={("", "alpha"): []}) == (1, 0, 23)


def test_a_card_that_moved_is_missed_only_on_the_way() -> None:
    both = {CARD: seen(0, 10), SAME_ELSEWHERE: seen(12, 24)}
    assert hours(CARD, both) == (10, 2, 12)
    assert hours(SAME_ELSEWHERE, both) == (12, 0, 12)


def test_a_card_known_from_before_and_after_was_there() -> None:
    known = frozenset({CARD})
    assert hours(CARD, {}, earlier=known, later=known) == (0, 24, 0)


def test_a_card_known_only_from_before_has_left() -> None:
    assert CARD not in coverage(PERIOD, {}, GpuEvidence(earlier=frozenset({CARD})))


def test_a_node_that_never_had_an_agent_is_known_to_kubernetes() -> None:
    times = {("", "alpha"): [(0.0, 12 * HOUR)]}
    assert hours(CARD, {}, unscraped={CARD: "NVIDIA H200"}, node_times=times) == (0, 12, 12)


def test_a_card_that_moved_is_missed_once_after_its_last_scrape() -> None:
    """Its second node's agent ended too: it is missed there, and not in its first node as well."""
    both = {CARD: seen(0, 10), SAME_ELSEWHERE: seen(12, 20)}
    assert hours(CARD, both) == (10, 2, 12)
    assert hours(SAME_ELSEWHERE, both) == (8, 4, 12)


def test_a_card_that_came_back_was_not_missed_while_it_was_elsewhere() -> None:
    both = {CARD: seen(0, 24, (6, 18)), SAME_ELSEWHERE: seen(8, 16)}
    assert hours(CARD, both) == (12, 2, 10)
    assert hours(SAME_ELSEWHERE, both) == (8, 2, 14)


def test_a_card_that_moved_here_is_missed_only_where_it_is_now() -> None:
    """It was seen in another node before the period, and here for a part of it."""
    known = frozenset({CARD})
    assert hours(SAME_ELSEWHERE, {SAME_ELSEWHERE: seen(4, 20)}, earlier=known) == (16, 8, 0)
    times = {("", name): [PERIOD] for name in ("alpha", "beta")}
    found = coverage(PERIOD, {SAME_ELSEWHERE: seen(4, 20)}, GpuEvidence(earlier=known, node_times=times))
    assert CARD not in found


def test_a_new_node_need_not_be_scraped_at_once() -> None:
    times = {("", "alpha"): [(4 * HOUR - 50, 20 * HOUR + 50)]}
    assert hours(CARD, {CARD: seen(4, 20)}, node_times=times) == (16, 0, 8)


def test_nodes_of_one_name_in_two_clusters_are_two() -> None:
    west = CardKey("west", "alpha", "GPU-1")
    times = {("west", "alpha"): [(4 * HOUR, 20 * HOUR)], ("east", "alpha"): [PERIOD]}
    assert hours(west, {west: seen(4, 20)}, node_times=times) == (16, 0, 8)
