"""Two tables of how much memory of each card was given to whom: one line for each node, or one for each pod.

Byte for byte, the layout is that of the kubectl plugin they come from, where that has one. Beyond it there are cards
without a known number, in a column of their own; sizes that are not known, `?`; and sums that lack some of them, `+`.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec
from msgspec import Struct

from podgpu.numbers import gib
from podgpu.views.cluster.inspect.holdings import (
    Amount,
    CardHolding,
    Holdings,
    NodeHolding,
    PodHolding,
    allocated,
    amount,
    of_node,
    total,
    used,
)
from podgpu.views.cluster.inspect.tabstops import aligned
from podgpu.views.text import printable

GIB, MIB = 1 << 30, 1 << 20
SCHEMA = 1
NO_ADDRESS = "unknown"
UNKNOWN = "?"
USUAL_CARDS = 16
IN_CLUSTER = "Allocated/Total GPU Memory In Cluster:"
# By how much the line of dashes is longer than what it is measured by.
LINE_BEYOND_ROW, LINE_BEYOND_PODS = 20, 10


class Unit(Struct, frozen=True):
    name: str
    size: int

    def whole(self, found: Amount) -> str:
        return f"{found.size // self.size}{'' if found.is_whole else '+'}"

    def fine(self, size: int | None) -> str:
        """Use is no round number: in GiB it has a decimal."""
        if size is None:
            return UNKNOWN
        return gib(size) if self.size == GIB else str(size // self.size)


def unit_of(found: Holdings) -> Unit:
    """GiB where everything is a whole number of them, else MiB, so that sums of different nodes are right."""
    cards = [card for node in found.nodes for card in node.cards]
    pods = [pod for node in found.nodes for pod in node.pending]
    pods += [pod for card in cards for pod in card.pods]
    sizes = (*(card.total_bytes for card in cards), *(pod.allocated_bytes for pod in pods))
    is_round = all(not (size or 0) % GIB for size in sizes)
    return Unit("GiB", GIB) if is_round else Unit("MiB", MIB)


class Layout(Struct, frozen=True, kw_only=True):
    """What the columns of a table are: numbered cards, those without a number, and what is on no card."""

    unit: Unit
    numbers: tuple[int, ...]
    nameless: bool
    pending: bool
    with_use: bool = False

    def row(self, cell: Callable[[Sequence[CardHolding]], str], node: NodeHolding) -> list[str]:
        numbered: dict[int | None, list[CardHolding]] = {}
        for card in node.cards:
            numbered.setdefault(card.index, []).append(card)
        cells = [cell(numbered.get(number, ())) for number in self.numbers]
        return [*cells, cell(_nameless(node))] if self.nameless else cells

    def heads(self, what: str) -> list[str]:
        numbered = [f"GPU{number}({what})" for number in self.numbers]
        return [*numbered, f"GPU?({what})"] if self.nameless else numbered


def table(found: Holdings, *, by_pod: bool, with_use: bool = False, width: int | None = None) -> str:
    """Return the usual table, or one with a line for each card where lines may not be longer than `width`."""
    usual = (detail if by_pod else summary)(found, with_use=with_use)
    is_fitting = width is None or max(map(len, usual.splitlines())) <= width
    return (usual if is_fitting else narrow(found, by_pod=by_pod, with_use=with_use)) + waiting(found)


def summary(found: Holdings, *, with_use: bool = False) -> str:
    layout = _layout(found.nodes, unit_of(found), with_use=with_use)
    what = "Used/Allocated/Total" if with_use else "Allocated/Total"
    memory = f"GPU Memory({layout.unit.name})"
    heads = [
        "NAME",
        "IPADDRESS",
        *layout.heads(what),
        *(["PENDING(Allocated)"] if layout.pending else []),
        memory,
    ]
    rows = ["\t".join(_line(node, layout)) + "\n" for node in found.nodes]
    dashes = "-" * (len(rows[0].encode()) + LINE_BEYOND_ROW) if rows else ""
    cards = [card for node in found.nodes for card in node.cards]
    footer = f"{dashes}\n{IN_CLUSTER}\n{_of_all(found.nodes, cards, layout.unit)}\t\n"
    return aligned("\t".join(heads) + "\n" + "".join(rows) + footer)


def detail(found: Holdings, *, with_use: bool = False) -> str:
    unit = unit_of(found)
    parts, dashes = [], ""
    for node in found.nodes:
        layout = _layout([node], unit, with_use=with_use)
        rows = "".join("\t".join(cells) + "\t\n" for cells in _pods(node, layout))
        dashes = dashes or "-" * (len(rows.encode()) + LINE_BEYOND_PODS)
        parts.append(f"{_head(node, layout)}{rows}{_foot(node, layout)}{dashes}\n")
    cards = [card for node in found.nodes for card in node.cards]
    return aligned("".join(parts) + f"\n\n{IN_CLUSTER}\t{_of_all(found.nodes, cards, unit)}\t\n")


def narrow(found: Holdings, *, by_pod: bool, with_use: bool = False) -> str:
    layout = _layout(found.nodes, unit_of(found), with_use=with_use)
    what = f"{'Used/' if with_use else ''}Allocated/Total({layout.unit.name})"
    rows = [f"NODE\tGPU\t{what}\n"]
    for node in found.nodes:
        rows.append(f"{node.name}\tall\t{_share(of_node(node), node.cards, layout)}\n")
        for card in node.cards:
            number = UNKNOWN if card.index is None else card.index
            rows.append(f"\t{number}\t{_share(allocated(card.pods), [card], layout)}\n")
            rows += [_below(pod, layout) for pod in card.pods if by_pod]
        if node.pending:
            rows.append(f"\tpending\t{layout.unit.whole(allocated(node.pending))}\n")
            rows += [_below(pod, layout) for pod in node.pending if by_pod]
    cards = [card for node in found.nodes for card in node.cards]
    return aligned("".join(rows)) + f"{IN_CLUSTER} {_of_all(found.nodes, cards, layout.unit)}\n"


def _below(pod: PodHolding, layout: Layout) -> str:
    given = UNKNOWN if pod.allocated_bytes is None else str(pod.allocated_bytes // layout.unit.size)
    shown = f"{layout.unit.fine(pod.used_bytes)}/{given}" if layout.with_use else given
    return f"\t\t  {shown} {pod.namespace}/{pod.name}\n"


def waiting(found: Holdings) -> str:
    """List the pods that have no node yet; nothing if there are none."""
    if not found.waiting:
        return ""
    rows = ["\nPods that wait for a node:\nNAME\tNAMESPACE\tASKS\tREASON\n"]
    for pod in found.waiting:
        asks = " ".join((*(f"{name}={text}" for name, text in pod.asks.items()), *pod.claims))
        reason = " ".join(pod.reason.split())
        rows.append("\t".join(map(printable, (pod.name, pod.namespace, asks, reason))) + "\n")
    return aligned("".join(rows))


def _layout(nodes: Iterable[NodeHolding], unit: Unit, *, with_use: bool) -> Layout:
    nodes = tuple(nodes)
    indices = {card.index for node in nodes for card in node.cards if card.index is not None}
    # An agent may number its cards as it likes; columns without any card are for the usual ones alone.
    usual = range(min(max(indices, default=-1) + 1, USUAL_CARDS))
    return Layout(
        unit=unit,
        numbers=tuple(sorted({*usual, *indices})),
        nameless=any(_nameless(node) for node in nodes),
        pending=any(node.pending for node in nodes),
        with_use=with_use,
    )


def _nameless(node: NodeHolding) -> list[CardHolding]:
    return [card for card in node.cards if card.index is None]


def _line(node: NodeHolding, layout: Layout) -> list[str]:
    unit = layout.unit
    cells = layout.row(lambda cards: _share(allocated(_on(cards)), cards, layout), node)
    pending = [unit.whole(allocated(node.pending)) if node.pending else ""] if layout.pending else []
    return [
        node.name,
        node.address or NO_ADDRESS,
        *cells,
        *pending,
        _share(of_node(node), node.cards, layout),
    ]


def _on(cards: Iterable[CardHolding]) -> list[PodHolding]:
    return [pod for card in cards for pod in card.pods]


def _share(given: Amount, cards: Sequence[CardHolding], layout: Layout) -> str:
    unit, whole = layout.unit, total(cards)
    known = UNKNOWN if cards and not whole.is_whole and not whole.size else unit.whole(whole)
    gave = UNKNOWN if not given.is_whole and not given.size else unit.whole(given)
    in_use = used(cards)
    seen = unit.fine(in_use.size if in_use.is_whole else None)
    return f"{seen}/{gave}/{known}" if layout.with_use else f"{gave}/{known}"


def _of_all(nodes: Iterable[NodeHolding], cards: Sequence[CardHolding], unit: Unit) -> str:
    given = [of_node(node) for node in nodes]
    gave = Amount(sum(one.size for one in given), all(one.is_whole for one in given))
    whole = total(cards)
    return f"{unit.whole(gave)}/{unit.whole(whole)} ({_percent(gave, whole)}%)"


def _percent(gave: Amount, whole: Amount) -> str:
    if not (gave.is_whole and whole.is_whole):
        return UNKNOWN
    return str(gave.size * 100 // whole.size if whole.size else 0)


def _head(node: NodeHolding, layout: Layout) -> str:
    heads = ["NAME", "NAMESPACE", *layout.heads("Used/Allocated" if layout.with_use else "Allocated")]
    heads += ["Pending(Allocated)"] if layout.pending else []
    named = f"\nNAME:\t{node.name}\nIPADDRESS:\t{node.address or NO_ADDRESS}\n\n"
    return named + "\t".join(heads) + "\t\n"


def _foot(node: NodeHolding, layout: Layout) -> str:
    gave, whole = of_node(node), total(node.cards)
    shown = f"{layout.unit.whole(gave)} ({_percent(gave, whole)}%)"
    return f"Allocated :\t{shown}\t\nTotal :\t{layout.unit.whole(whole)} \t\n"


def _pods(node: NodeHolding, layout: Layout) -> list[list[str]]:
    """List each pod once, in the order of its first card; those on no card come last."""
    rows = []
    for who in dict.fromkeys(map(_who, (*_on(node.cards), *node.pending))):
        cells = layout.row(partial(_of_pod, who, layout), node)
        pending = [pod for pod in node.pending if _who(pod) == who]
        rows.append(
            [who[1], who[0], *cells, *([layout.unit.whole(allocated(pending))] if layout.pending else [])]
        )
    return rows


def _who(pod: PodHolding) -> tuple[str, str, str]:
    return pod.namespace, pod.name, pod.uid


def _of_pod(who: tuple[str, str, str], layout: Layout, cards: Sequence[CardHolding]) -> str:
    mine = [pod for pod in _on(cards) if _who(pod) == who]
    given = allocated(mine)
    shown = UNKNOWN if not given.is_whole and not given.size else layout.unit.whole(given)
    if not layout.with_use or not mine:
        return shown
    in_use = amount(pod.used_bytes for pod in mine)
    return f"{layout.unit.fine(in_use.size if in_use.is_whole else None)}/{shown}"


def document(found: Holdings) -> str:
    """The same figures for other programs, in bytes. What is not known is absent."""
    return msgspec.json.format(msgspec.json.encode({"schema": SCHEMA, **msgspec.to_builtins(found)})).decode()
