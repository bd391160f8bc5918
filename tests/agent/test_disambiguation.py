"""A container that runs on the cards of one reading alone shows that this reading is right."""

import pytest

from podgpu.agent.inventory import Disambiguation
from podgpu.model import Claim, ContainerRef, Device, Gpu, Holder, Process
from podgpu.sharing.system import AmbiguousClaims

CONTAINER = ContainerRef("ns", "p", "c", "uid")
CARDS = ("A", "B", "C")


def either(*readings: str, usual: int | None = None, container: ContainerRef = CONTAINER) -> AmbiguousClaims:
    """Readings are written as the letters of their cards."""
    claimed = tuple(tuple(Claim(gpu=card, container=container, system="s") for card in reading) for reading in readings)
    return AmbiguousClaims(options=claimed, usual=usual)


class Node:
    """Cards A, B and C, and who runs on them."""

    def __init__(self) -> None:
        self.witness = Disambiguation()

    def settle(self, *asked: AmbiguousClaims, on: str = "") -> list[int | None]:
        """Let the container run on some cards, by their letters."""
        return self.see({CONTAINER: on}, *asked)

    def see(
        self, on: dict[ContainerRef, str], *asked: AmbiguousClaims, kinds: tuple[str, ...] = ("compute",)
    ) -> list[int | None]:
        holders = {pid: Holder(pid=pid, kind="pod", container=container) for pid, container in enumerate(on, 100)}
        pids = dict(zip(on, holders, strict=True))
        devices = [
            Device(
                gpu=Gpu(uuid=card, index=index),
                processes=tuple(
                    Process(pid=pids[container], kinds=kinds) for container, cards in on.items() if card in cards
                ),
            )
            for index, card in enumerate(CARDS)
        ]
        settled = self.witness.settle(asked, devices, holders)
        return [settled.get(ambiguous) for ambiguous in asked]


@pytest.mark.parametrize(
    ("readings", "on", "right"),
    [
        (("A", "B"), "A", 0),
        (("A", "B"), "B", 1),
        (("A", "B"), "", None),  # nobody runs
        (("A", "B"), "AB", None),  # on cards of both, so by neither
        (("A", "B"), "C", None),  # on a card of none
        (("A", "B"), "AC", None),
        (("AB", "BC"), "B", None),  # both name it
        (("AB", "BC"), "AB", 0),
        (("AB", "BC"), "C", 1),
        (("AB", "BC"), "ABC", None),
    ],
)
def test_the_reading_whose_cards_it_runs_on_is_right(readings: tuple[str, ...], on: str, right: int | None) -> None:
    assert Node().settle(either(*readings), on=on) == [right]


def test_it_stays_decided_when_the_processes_end() -> None:
    node = Node()
    assert node.settle(either("A", "B"), on="B") == [1]
    assert node.settle(either("A", "B")) == [1]
    assert node.settle(either("A", "B"), on="AB") == [1]


def test_it_is_decided_anew_by_processes_on_the_other_card() -> None:
    node = Node()
    assert node.settle(either("A", "B"), on="B") == [1]
    assert node.settle(either("A", "B"), on="A") == [0]
    assert node.settle(either("A", "B")) == [0]


def test_other_cards_are_another_question() -> None:
    node = Node()
    node.settle(either("A", "B"), on="B")
    assert node.settle(either("A", "C")) == [None]
    assert node.settle(either("A", "B")) == [None]


def test_a_share_that_changes_is_the_same_question() -> None:
    node = Node()
    node.settle(either("A", "B"), on="B")
    smaller = tuple((Claim(gpu=card, container=CONTAINER, system="s", share=0.1),) for card in "AB")
    assert node.settle(AmbiguousClaims(options=smaller)) == [1]


def test_what_is_no_longer_asked_is_forgotten() -> None:
    node = Node()
    node.settle(either("A", "B"), on="B")
    node.settle()
    assert node.settle(either("A", "B")) == [None]


def test_a_process_that_has_ended_shows_nothing() -> None:
    assert Node().see({CONTAINER: "A"}, either("A", "B"), kinds=()) == [None]


@pytest.mark.parametrize(
    "other",
    [
        ContainerRef("ns", "q", "c", "uid-2"),
        ContainerRef("ns", "p", "sidecar", "uid"),
        ContainerRef("other", "p", "c", "uid"),
        ContainerRef("ns", "p", "c", "uid-2"),  # a later pod of the same name
    ],
)
def test_nobody_else_decides(other: ContainerRef) -> None:
    assert Node().see({other: "A"}, either("A", "B")) == [None]
    assert Node().see({other: "A", CONTAINER: "B"}, either("A", "B")) == [1]


def test_a_uid_that_is_not_known_does_not_matter() -> None:
    nameless = ContainerRef("ns", "p", "c", "")
    assert Node().see({nameless: "A"}, either("A", "B")) == [0]
    assert Node().see({CONTAINER: "A"}, either("A", "B", container=nameless)) == [0]


def test_two_pods_of_a_name_do_not_decide_for_one_without_a_uid() -> None:
    nameless = ContainerRef("ns", "p", "c", "")
    two = {CONTAINER: "A", ContainerRef("ns", "p", "c", "uid-2"): "A"}
    assert Node().see(two, either("A", "B", container=nameless)) == [None]


def test_each_container_is_settled_by_itself() -> None:
    second = ContainerRef("ns", "p", "d", "uid")
    asked = either("A", "B"), either("A", "B", container=second)
    assert Node().see({CONTAINER: "A", second: "B"}, *asked) == [0, 1]
