"""What a sharing system is. Its file or folder in this package exports it as `SYSTEM`."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from podgpu.model import Allocation, Claim, ContainerRef, Device, Excused
from podgpu.model.fit import WantedPart
from podgpu.sharing.inventory import Host, Inventory, Observation

# The system, the container, and the cards of each option: as long as these are the same, so is the answer.
AmbiguityKey: TypeAlias = tuple[str, ContainerRef, tuple[frozenset[str], ...]]


class MinimumClaim(Struct, frozen=True, kw_only=True):
    """The least that a claim can be: its share, and its limits of memory in bytes and of cores as a ratio, if any.

    Anyone who may edit a pod can write its annotations. A small number there would put the cost on the other tenants
    of the card. So the container's spec, and the ids that the kubelet allocated, count for more.
    """

    share: float = 0.0
    memory: int = 0
    cores: float = 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class AmbiguousClaims:
    """What a container may have, where its annotations or ids can be read in more than one way.

    Each option has at least one claim, and no two options have the same cards. `usual` is the option that counts
    unless the container's processes are seen on the cards of another one. Without it, nothing is claimed until they
    are seen. `doubt` is what to say meanwhile, with `{count}` for the number of containers. Compared by identity, which
    makes it a cheap key.
    """

    options: tuple[tuple[Claim, ...], ...]
    usual: int | None = None
    doubt: str = ""

    @property
    def container(self) -> ContainerRef:
        return self.options[0][0].container

    @property
    def system(self) -> str:
        return self.options[0][0].system

    @cached_property
    def cards(self) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(claim.gpu for claim in option) for option in self.options)

    @cached_property
    def key(self) -> AmbiguityKey:
        return self.system, self.container, self.cards

    def settled(self, right: int) -> Iterator[Claim]:
        """Yield the claims of the right option, with the cards that it rules out."""
        others = sorted(frozenset().union(*self.cards) - self.cards[right])
        yield from (replace(claim, ruled_out=tuple(others)) for claim in self.options[right])


@dataclass(frozen=True)
class PartRequest:
    """How a part of a card is asked for: which kind of part, and the lines of YAML."""

    kind: str
    lines: Callable[[WantedPart], str]


@dataclass(frozen=True, kw_only=True)
class SharingSystem:
    """How device ids, resources and annotations become claims.

    `signs` are prefixes of names that show that the system is in use: of resources, drivers, and annotations and
    labels of pods. `needs` says what podgpu needs to book by it. `explains` says whether an allocation has one of the
    system's own ids. Ids of `own_resources` seem to name a card, but its plugin does not keep to them. `withdraws`
    rejects a claim of another system. A system that `yields` makes no claim for a container that another system's
    annotation or file covers. `ambiguous_claims` are those of containers that may have other cards than `claims` says.
    `doubts` are sentences about what cannot be known. `observe` reads what the system left on the node. `excused` are
    pods whose claims it withdraws because they hold cards for others, each with the card and the proof.

    `cards` are those that Kubernetes shows on a node without an agent: the inventory has no devices then.
    `node_annotations` are those in which a plugin lists the cards of its node, `node_labels` those in which it
    describes them all. `memory_of` is the memory that an allocation stands for, on whichever card.

    `annotations` are prefixes of the annotations and labels of pods that the system reads; no others are kept. A
    system with annotations says what is true without them: `minimum`, by the container's spec and ids, and `holdings`,
    one allocation of each container that holds something; its `units` are how many cards or MIG instances it has. A
    system `lasts` if annotations alone may show how much a pod has, and its scheduler writes them once: a pod keeps the
    most that it ever had by them. One `without_ids` has nothing in the kubelet's list: annotations count for as long as
    the pod lives. `request` is how a pod asks for what the system provides.
    """

    name: str
    signs: tuple[str, ...]
    needs: str
    explains: Callable[[Allocation, Inventory], bool]
    claims: Callable[[Inventory], Iterable[Claim]]
    own_resources: tuple[str, ...] = ()
    withdraws: Callable[[Claim, Inventory], bool] = lambda *_: False
    yields: bool = False
    ambiguous_claims: Callable[[Inventory], Iterable[AmbiguousClaims]] = lambda _: ()
    doubts: Callable[[Inventory], Iterable[str]] = lambda _: ()
    observe: Callable[[Host], Observation] = lambda _: Observation()
    excused: Callable[[Inventory], Iterable[tuple[str, Excused]]] = lambda _: ()
    cards: Callable[[Inventory], Iterable[Device]] = lambda _: ()
    node_annotations: tuple[str, ...] = ()
    node_labels: tuple[str, ...] = ()
    memory_of: Callable[[Allocation, Inventory], int | None] = lambda *_: None
    annotations: tuple[str, ...] = ()
    minimum: Callable[[Claim, Inventory], MinimumClaim | None] = lambda *_: None
    holdings: Callable[[Inventory], Iterable[Allocation]] = lambda _: ()
    lasts: bool = False
    without_ids: bool = False
    request: PartRequest | None = None
