"""gpushare: the kubelet says how much, the scheduler's note where, and the card's memory what a unit is."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import example
from hypothesis import given as chosen
from hypothesis import strategies as st

from podgpu.model import Allocation, Claim, Device, Gpu, Pod, PodContainer, Reading
from podgpu.sharing import ambiguous_claims, claims, gpushare, statuses, unclaimed
from podgpu.sharing.inventory import Inventory

ONE, TWO = "GPU-minor-3", "GPU-minor-2"
GIB, MIB = 1 << 30, 1 << 20
H200 = 143_771 * MIB  # 140 units in GiB


def device(uuid: str, minor: int, memory: float | None) -> Device:
    readings = () if memory is None else (Reading("memory_total_bytes", memory),)
    return Device(gpu=Gpu(uuid=uuid, index=9 - minor, minor=minor), readings=readings)


def given(count: int, container: str = "c", card: str = ONE, start: int = 0) -> list[Allocation]:
    return [
        Allocation(
            namespace="ns",
            pod="p",
            container=container,
            resource=gpushare.RESOURCE,
            device_id=f"{card}-_-{n}",
        )
        for n in range(start, start + count)
    ]


def noted(annotations: dict[str, str], *spec: str, phase: str = "Running") -> Pod:
    containers = tuple(PodContainer(name=name, is_init=name == "init") for name in spec or ("c",))
    return Pod(namespace="ns", name="p", uid="uid", phase=phase, annotations=annotations, containers=containers)


def spread(note: object, *spec: str, phase: str = "Running") -> Pod:
    """It takes precedence over the older note, which names another card."""
    notes = {gpushare.SPREAD: json.dumps(note), gpushare.NUMBER: "3", gpushare.UNITS_OF_CARD: "140"}
    return noted(notes, *spec, phase=phase)


def node(
    allocations: Sequence[Allocation],
    *pods: Pod,
    memory: float | None = H200,
    offered: Sequence[tuple[str, str]] = (),
) -> Inventory:
    return Inventory([device(ONE, 3, memory), device(TWO, 2, memory)], allocations, offered, pods)


def found(
    allocations: Sequence[Allocation],
    *pods: Pod,
    memory: float | None = H200,
    offered: Sequence[tuple[str, str]] = (),
) -> list[Claim]:
    return list(gpushare.claims(node(allocations, *pods, memory=memory, offered=offered)))


def units(claims: Sequence[Claim]) -> dict[tuple[str, str], int]:
    """Container and card -> whole GiB."""
    return {(claim.container.container, claim.gpu): (claim.memory_limit_bytes or 0) // GIB for claim in claims}


def offers(of_card: int) -> list[tuple[str, str]]:
    return [(gpushare.RESOURCE, f"{card}-_-{n}") for card in (ONE, TWO) for n in range(of_card)]


def permuted(*numbers: tuple[str, int, int]) -> list[Device]:
    """Cards by UUID, index and number in /dev."""
    return [Device(gpu=Gpu(uuid=uuid, index=index, minor=minor)) for uuid, index, minor in numbers]


def test_where_index_and_number_in_dev_are_two_cards_it_is_not_decided() -> None:
    """Plugins up to 0.3.0 go by the number in /dev, newer ones by the index."""
    cards = permuted((ONE, 0, 1), (TWO, 1, 0))
    node = Inventory(cards, given(5), (), [noted({gpushare.NUMBER: "0", gpushare.UNITS_OF_CARD: "20"})])
    assert list(gpushare.claims(node)) == []
    (either,) = ambiguous_claims(node)
    assert either.usual is None
    assert [[(claim.gpu, claim.share) for claim in reading] for reading in either.options] == [
        [(TWO, 0.25)],
        [(ONE, 0.25)],
    ]
    (status,) = statuses(node, (), [either])
    assert (status.claims, status.missing) == (0, "")
    assert "not known for 1 container" in " ".join(status.doubts)
    assert all(gpushare.explains(each, node) for each in given(5))


@pytest.mark.parametrize(("right", "card", "other"), [(0, TWO, ONE), (1, ONE, TWO)])
def test_what_processes_settled_is_claimed_and_no_longer_in_doubt(right: int, card: str, other: str) -> None:
    cards = permuted((ONE, 0, 1), (TWO, 1, 0))
    node = Inventory(cards, given(5), (), [noted({gpushare.NUMBER: "0", gpushare.UNITS_OF_CARD: "20"})])
    (either,) = ambiguous_claims(node)
    (claim,) = claims(node, {either: right})
    assert (claim.gpu, claim.share, claim.ruled_out) == (card, 0.25, (other,))
    (status,) = statuses(node, (claim,), ())
    assert (status.claims, status.doubts) == (1, ())


@pytest.mark.parametrize(
    "cards",
    [
        permuted((ONE, 0, 0), (TWO, 1, 2)),  # the same card by both
        permuted((ONE, 0, 1), (TWO, 1, 2)),  # no other has that number
        permuted((ONE, 1, 0), (TWO, 2, 1)),
    ],
)
def test_a_number_that_can_be_only_one_cards_is_decided(cards: list[Device]) -> None:
    node = Inventory(cards, given(5), (), [noted({gpushare.NUMBER: "0"})])
    assert [claim.gpu for claim in gpushare.claims(node)] == [ONE]
    assert list(gpushare.ambiguous_claims(node)) == []


def test_a_container_may_be_spread_over_cards() -> None:
    allocations = given(12)
    claims = found(allocations, spread({"0": {"2": 8, "3": 4}}))
    assert units(claims) == {("c", TWO): 8, ("c", ONE): 4}
    assert [claim.share for claim in claims] == [8 / 140, 4 / 140]
    assert {claim.source for claim in claims} == {"annotation"}
    assert claims[0].device_id == f"{TWO}-_-* (8 of 140 units)"
    seen = node(allocations, spread({"0": {"2": 8, "3": 4}}))
    assert all(gpushare.explains(each, seen) for each in allocations)


def test_the_spread_counts_containers_by_the_spec() -> None:
    """Init containers are not counted, and the kubelet lists by name."""
    pod = spread({"0": {"2": 5}, "2": {"3": 5}}, "init", "z", "log", "a")
    assert units(found(given(5, "a") + given(5, "z"), pod)) == {("z", TWO): 5, ("a", ONE): 5}


def test_the_spread_beats_the_older_note() -> None:
    assert units(found(given(5), spread({"0": {"2": 5}}))) == {("c", TWO): 5}


@pytest.mark.parametrize("note", [{"0": {"2": 6}}, {"0": {"2": 3, "3": 3}}, {"0": {"2": 10**6}}])
def test_a_spread_of_more_than_the_kubelet_gave_is_not_believed(note: object) -> None:
    allocations = given(5)
    assert found(allocations, spread(note)) == []
    assert unclaimed(node(allocations, spread(note))) == tuple(allocations)


@pytest.mark.parametrize(
    "note",
    [
        {},
        [],
        None,
        7,
        {"0": {}},
        {"1": {"2": 5}},
        {"c": {"2": 5}},
        {"00": {"2": 5}},
        {"0": {"8": 5}},
        {"0": {"-1": 5}},
        {"0": {"2": 0}},
        {"0": {"2": -5}},
        {"0": {"2": "5"}},
        {"0": {"2": 1.5}},
        {"0": {"2": 10**30}},
        {"0": 5},
    ],
)
def test_a_spread_that_makes_no_sense_places_nothing(note: object) -> None:
    assert found(given(5), spread(note)) == []


def test_a_card_that_is_not_here_is_left_out_alone() -> None:
    assert units(found(given(5), spread({"0": {"2": 3, "9": 2}}))) == {("c", TWO): 3}


def test_without_the_order_only_a_single_container_is_placed() -> None:
    """A pod that is known by its name alone has no phase."""
    alone = spread({"1": {"2": 5}}, "a", "b", phase="")
    assert units(found(given(5, "b"), alone)) == {("b", TWO): 5}
    assert found(given(5, "a") + given(5, "b"), alone) == []
    assert found(given(5, "b"), spread({"0": {"2": 5}, "1": {"3": 5}}, "a", "b", phase="")) == []


def test_the_older_note_names_the_card_of_all_containers() -> None:
    pod = noted({gpushare.NUMBER: "2", gpushare.UNITS_OF_CARD: "140"}, "a", "b")
    assert units(found(given(5, "a") + given(7, "b"), pod)) == {("a", TWO): 5, ("b", TWO): 7}


def test_what_the_kubelet_offers_comes_before_what_the_note_says_of_a_card() -> None:
    """Else a tenant could make his units as large as he likes."""
    pod = noted({gpushare.NUMBER: "2", gpushare.UNITS_OF_CARD: "5"})
    (claim,) = found(given(5), pod, offered=offers(140))
    assert claim.share == 5 / 140


@pytest.mark.parametrize(
    ("memory", "of_card", "unit"),
    [
        (H200, 140, GIB),
        (H200, 143_771, MIB),
        (288 * GIB, 288, GIB),
        (7618 * MIB, 7, GIB),
        (12_066 * MIB, 11, GIB),
        (2000 * MIB, 2000, MIB),
        (512 * MIB, 512, MIB),
        (None, 140, GIB),
        (None, 16_384, MIB),
        (H200, 8, GIB),
        (H200, 80_000, MIB),
    ],
)
def test_the_unit_is_found_by_the_cards_memory(memory: int | None, of_card: int, unit: int) -> None:
    """Where neither fits or the memory is not known, by what a card can have."""
    pod = noted({gpushare.NUMBER: "2", gpushare.UNITS_OF_CARD: str(of_card)})
    (claim,) = found(given(3), pod, memory=memory)
    assert (claim.memory_limit_bytes, claim.share) == (3 * unit, 3 / of_card)


def test_where_nobody_tells_the_numbers_of_the_ids_do() -> None:
    """Few MiB of a large card are not as many GiB."""
    pod = noted({gpushare.NUMBER: "2"})
    (some_gib,) = found(given(100), pod)
    (some_mib,) = found(given(100, start=90), pod)
    assert (some_gib.memory_limit_bytes, some_mib.memory_limit_bytes) == (100 * GIB, 100 * MIB)


def test_a_card_of_unknown_size_has_no_shares() -> None:
    (claim,) = found(given(5), noted({gpushare.NUMBER: "2"}), memory=None)
    assert (claim.gpu, claim.share, claim.memory_limit_bytes) == (TWO, 0.0, None)
    assert claim.device_id == f"{TWO}-_-* (5 units)"


def test_without_a_note_the_card_is_known_only_if_the_plugin_shares_no_other() -> None:
    """The kubelet picks any ids, and the plugin does not keep to them."""
    of_two = [offer for offer in offers(140) if offer[1].startswith(TWO)]
    (claim,) = found(given(5, card=TWO), offered=of_two)
    assert (claim.gpu, claim.source) == (TWO, "podresources")
    for offered in ([], offers(140)):
        undecided = node(given(5, card=TWO), offered=offered)
        assert list(gpushare.claims(undecided)) == []
        assert unclaimed(undecided) == tuple(given(5, card=TWO))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
PLACES = st.sampled_from(["0", "1", "2", "x", ""])
MINORS = st.dictionaries(st.sampled_from(["2", "3", "7", ""]), st.integers(-1, 9) | JSON, max_size=3)
NOTES = st.text() | JSON.map(json.dumps) | st.dictionaries(PLACES, MINORS | JSON, max_size=3).map(json.dumps)


@chosen(
    note=NOTES,
    minor=st.sampled_from(["2", "9", ""]),
    of_card=st.text(max_size=12) | st.integers().map(str),
    counts=st.dictionaries(st.sampled_from("ab"), st.integers(1, 9)),
    phase=st.sampled_from(["", "Running"]),
)
@example(note="\ud800", minor="2", of_card="", counts={"a": 1}, phase="Running")
@example(note='{"0":' * 60_000, minor="2", of_card="", counts={"a": 1}, phase="Running")
@example(note='{"0":{"2":' + "9" * 60_000 + "}}", minor="2", of_card="", counts={"a": 1}, phase="Running")
def test_no_note_claims_more_than_the_kubelet_gave(
    note: str, minor: str, of_card: str, counts: dict[str, int], phase: str
) -> None:
    notes = {gpushare.SPREAD: note, gpushare.NUMBER: minor, gpushare.UNITS_OF_CARD: of_card}
    allocations = [allocation for name, count in counts.items() for allocation in given(count, name)]
    seen = node(allocations, noted(notes, "a", "b", phase=phase), offered=offers(140))
    claims = list(gpushare.claims(seen))
    for name, count in counts.items():
        shares = [claim.share for claim in claims if claim.container.container == name]
        assert sum(shares) <= count / 140 + 1e-9
    assert all(claim.gpu in (ONE, TWO) for claim in claims)
    placed = {claim.container.container for claim in claims}
    placed |= {claim.container.container for claim in gpushare.ambiguous_claims(seen)}
    assert {allocation.container for allocation in allocations if gpushare.explains(allocation, seen)} == placed
