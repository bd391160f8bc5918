"""The cards of a node without an agent, as far as Kubernetes shows them.

A card without a UUID gets a name that only this module's readers use: no document holds it.
"""

from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from podgpu import sharing
from podgpu.model import UNKNOWN, Device, Gpu, KubeNode
from podgpu.sharing import kube_cards
from podgpu.sharing.inventory import Inventory

WHOLE = "nvidia.com/gpu"
COUNT, MEMORY, PRODUCT = "nvidia.com/gpu.count", "nvidia.com/gpu.memory", "nvidia.com/gpu.product"
REPLICAS, STRATEGY = "nvidia.com/gpu.replicas", "nvidia.com/gpu.sharing-strategy"
MIG_PRODUCT, SHARED_PRODUCT = "-MIG-", "-SHARED"  # within the product, where what is offered is no whole card
MIB = 1 << 20

NUMBERED, NAMELESS = "GPU", "GPU?"  # what names of cards without a UUID begin with


def is_made_up(uuid: str) -> bool:
    return bool(uuid) and not uuid.startswith("GPU-")


def model_of(node: KubeNode) -> str:
    """The model by the node's label, which has dashes for blanks, and what is added for shared cards."""
    product = node.labels.get(PRODUCT, "")
    return product.partition(MIG_PRODUCT)[0].removesuffix(SHARED_PRODUCT)


def known_cards(inventory: Inventory, systems: Sequence[sharing.SharingSystem]) -> tuple[Device, ...]:
    """Return each card once: by UUID, then by number, then those that only their count is known of."""
    node = inventory.node
    cards = _Cards()
    for card in sharing.cards(inventory, systems):
        cards.add(card)
    known = cards.named()
    missing = _missing(inventory, known, sharing.node_annotations_of(systems))
    nameless = [_called(kube_cards.card(), f"{NAMELESS}{place}") for place in range(missing)]
    return tuple(_described(card, node) for card in (*known, *nameless))


class _Cards:
    """Joins what several systems say of a card."""

    def __init__(self) -> None:
        self._cards: list[Device] = []

    def add(self, new: Device) -> None:
        for place, old in enumerate(self._cards):
            if _is_same(old.gpu, new.gpu):
                self._cards[place] = _joined(old, new)
                return
        self._cards.append(new)

    def named(self) -> list[Device]:
        """Return the cards by number, then those without a number."""
        ordered = sorted(
            self._cards, key=lambda card: (card.gpu.index == UNKNOWN, card.gpu.index, card.gpu.uuid)
        )
        return [
            card
            if card.gpu.uuid
            else _called(card, NAMELESS if card.gpu.index == UNKNOWN else f"{NUMBERED}{card.gpu.index}")
            for card in ordered
        ]


def _is_same(old: Gpu, new: Gpu) -> bool:
    if old.uuid and new.uuid:
        return old.uuid == new.uuid
    return old.index == new.index and (old.index != UNKNOWN or old.uuid == new.uuid)


def _joined(old: Device, new: Device) -> Device:
    mine, its = old.gpu, new.gpu
    migs = {instance.mig.uuid: instance for instance in (*new.instances, *old.instances)}
    return replace(
        old,
        gpu=replace(
            mine,
            uuid=mine.uuid or its.uuid,
            index=its.index if mine.index == UNKNOWN else mine.index,
            minor=its.minor if mine.minor is None else mine.minor,
            model=mine.model or its.model,
            mig_enabled=bool(migs),
        ),
        readings=old.readings or new.readings,
        instances=tuple(migs[name] for name in sorted(migs)),
    )


def _called(device: Device, name: str) -> Device:
    return replace(device, gpu=replace(device.gpu, uuid=name))


def _described(device: Device, node: KubeNode) -> Device:
    """Fill in what labels say of all cards of the node alike."""
    size = node.labels.get(MEMORY, "")
    is_of_cards = MIG_PRODUCT not in node.labels.get(PRODUCT, "")
    labelled = int(size) * MIB if is_of_cards and size.isascii() and size.isdigit() and len(size) < 9 else 0
    readings = kube_cards.card(memory=labelled).readings
    return replace(
        device,
        gpu=replace(device.gpu, model=device.gpu.model or model_of(node)),
        readings=device.readings or readings,
    )


def _missing(inventory: Inventory, known: list[Device], registers: Collection[str]) -> int:
    """How many cards there are besides those that are known. The cards of nameless MIG instances are not known."""
    node = inventory.node
    if any(card.instances and is_made_up(card.gpu.uuid) for card in known) and COUNT in node.labels:
        return 0
    is_of_cards = MIG_PRODUCT not in node.labels.get(PRODUCT, "")
    if labelled := kube_cards.offered(node.labels, COUNT) if is_of_cards else 0:
        return max(0, min(labelled, kube_cards.MOST_CARDS) - len(known))
    whole = min(kube_cards.offered(node.capacity, WHOLE), kube_cards.MOST_CARDS)
    others = set(_of_others(inventory))
    own = [card for card in known if not card.instances and card.gpu.uuid not in others]
    return max(0, whole - len(own)) if hands_out_whole(inventory, registers) else 0


def hands_out_whole(inventory: Inventory, registers: Collection[str]) -> bool:
    """Whether the plain resource means whole cards on this node: no label, id or register says otherwise."""
    node = inventory.node
    product = node.labels.get(PRODUCT, "")
    is_shared = (
        node.labels.get(REPLICAS, "1") not in ("", "0", "1")
        or node.labels.get(STRATEGY, "none") != "none"
        or MIG_PRODUCT in product
        or product.endswith(SHARED_PRODUCT)
        or any(name in registers for name in node.annotations)
    )
    ids = (given.device_id for given in inventory.allocations if given.resource == WHOLE and given.device_id)
    return not is_shared and all(map(kube_cards.UUID.fullmatch, ids))


def _of_others(inventory: Inventory) -> Iterator[str]:
    """Name the cards that are handed out by other resources and by drivers."""
    for given in inventory.allocations:
        if given.resource != WHOLE and (named := kube_cards.UUID.match(given.device_id)):
            yield named[0]
    yield from (device.attributes.get("uuid", "") for device in inventory.pool_devices)
