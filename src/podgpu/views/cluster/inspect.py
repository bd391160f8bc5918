"""Two tables of how much memory of each card is allocated to which pod: one line for each node, or one for each pod.

The layout is that of the kubectl plugin they come from, byte for byte. podgpu adds a column for cards whose number is
not known, `?` for sizes that are not known, and `+` for sums that lack some of them.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import Struct

from podgpu.model.kube import grouped
from podgpu.numbers import gib
from podgpu.views.cluster.card_memory import (
    GIB,
    CardMemory,
    ClusterMemory,
    KnownSum,
    NodeMemory,
    PodMemory,
    allocated,
    known_sum,
    total,
)
from podgpu.views.text import printable

MIB = 1 << 20
SCHEMA = 1
NO_ADDRESS = "unknown"
UNKNOWN = "?"
USUAL_CARDS = 16
IN_CLUSTER = "Allocated/Total GPU Memory In Cluster:"
# By how much the line of dashes is longer than what it is measured by.
LINE_BEYOND_ROW, LINE_BEYOND_PODS = 20, 10
PADDING = 2


class SizeUnit(Struct, frozen=True):
    name: str
    size: int

    def whole(self, found: KnownSum) -> str:
        return f"{found.size // self.size}{'' if found.is_whole else '+'}"

    def known(self, found: KnownSum) -> str:
        """Like `whole`, but `?` for a sum of which nothing is known."""
        return UNKNOWN if not found.is_whole and not found.size else self.whole(found)

    def fine(self, size: int | None) -> str:
        """Memory in use is no round number: in GiB it has a decimal."""
        if size is None:
            return UNKNOWN
        return gib(size) if self.size == GIB else str(size // self.size)


class CardColumns(Struct, frozen=True, kw_only=True):
    """The columns of a table: numbered cards, those without a number, and pods on no known card."""

    unit: SizeUnit
    numbers: tuple[int, ...]
    unnumbered: bool
    pending: bool
    with_use: bool = False

    def cards(self, node: NodeMemory) -> list[Sequence[CardMemory]]:
        """Return the cards of a node, column by column."""
        numbered = grouped(node.cards, lambda card: card.index)
        return [numbered.get(number, ()) for number in (*self.numbers, *([None] if self.unnumbered else []))]

    def heads(self, what: str) -> list[str]:
        numbered = [f"GPU{number}({what})" for number in self.numbers]
        return [*numbered, f"GPU?({what})"] if self.unnumbered else numbered

    def share(self, cards: Sequence[CardMemory], beside: Iterable[PodMemory] = ()) -> str:
        """Write `3/8`, or `2.5/3/8` with what is used; `beside` are pods on none of these cards."""
        shown = f"{self.unit.known(allocated((*_pods(cards), *beside)))}/{self.unit.known(total(cards))}"
        return f"{self._used(card.used_bytes for card in cards)}/{shown}" if self.with_use else shown

    def pod(self, own: Sequence[PodMemory]) -> str:
        """Write what a pod has."""
        shown = self.unit.known(allocated(own))
        return f"{self._used(pod.used_bytes for pod in own)}/{shown}" if self.with_use and own else shown

    def _used(self, sizes: Iterable[int | None]) -> str:
        return self.unit.fine(known_sum(sizes).exact)


def table(found: ClusterMemory, *, by_pod: bool, width: int, with_use: bool = False) -> str:
    """Return the usual table, or one with a line for each card where lines may not be longer than `width`."""
    usual = (detail if by_pod else summary)(found, with_use=with_use)
    is_fitting = max(map(len, usual.splitlines())) <= width
    return (usual if is_fitting else narrow(found, by_pod=by_pod, with_use=with_use)) + waiting(found)


def document(found: ClusterMemory) -> str:
    """The same figures for other programs, in bytes. What is not known is absent."""
    return msgspec.json.format(msgspec.json.encode({"schema": SCHEMA, **msgspec.to_builtins(found)})).decode()


def summary(found: ClusterMemory, *, with_use: bool = False) -> str:
    columns = _columns(found.nodes, _unit(found), with_use=with_use)
    heads = columns.heads("Used/Allocated/Total" if with_use else "Allocated/Total")
    pending = ["PENDING(Allocated)"] if columns.pending else []
    titles = ["NAME", "IPADDRESS", *heads, *pending, f"GPU Memory({columns.unit.name})"]
    rows = ["\t".join(_summary_row(node, columns)) + "\n" for node in found.nodes]
    dashes = "-" * (len(rows[0].encode()) + LINE_BEYOND_ROW) if rows else ""
    footer = f"{dashes}\n{IN_CLUSTER}\n{_ratio(found, columns.unit)}\t\n"
    return aligned("\t".join(titles) + "\n" + "".join(rows) + footer)


def detail(found: ClusterMemory, *, with_use: bool = False) -> str:
    unit = _unit(found)
    parts, dashes = [], ""
    for node in found.nodes:
        columns = _columns([node], unit, with_use=with_use)
        rows = "".join("\t".join(cells) + "\t\n" for cells in _pod_rows(node, columns))
        dashes = dashes or "-" * (len(rows.encode()) + LINE_BEYOND_PODS)
        parts.append(f"{_head(node, columns)}{rows}{_foot(node, unit)}{dashes}\n")
    return aligned("".join(parts) + f"\n\n{IN_CLUSTER}\t{_ratio(found, unit)}\t\n")


def narrow(found: ClusterMemory, *, by_pod: bool, with_use: bool = False) -> str:
    columns = _columns(found.nodes, _unit(found), with_use=with_use)
    what = f"{'Used/' if with_use else ''}Allocated/Total({columns.unit.name})"
    rows = [f"NODE\tGPU\t{what}\n"]
    for node in found.nodes:
        rows.append(f"{node.name}\tall\t{columns.share(node.cards, node.pending)}\n")
        for card in node.cards:
            number = UNKNOWN if card.index is None else card.index
            rows.append(f"\t{number}\t{columns.share([card])}\n")
            rows += [_narrow_row(pod, columns) for pod in card.pods if by_pod]
        if node.pending:
            rows.append(f"\tpending\t{columns.unit.known(allocated(node.pending))}\n")
            rows += [_narrow_row(pod, columns) for pod in node.pending if by_pod]
    return aligned("".join(rows)) + f"{IN_CLUSTER} {_ratio(found, columns.unit)}\n"


def waiting(found: ClusterMemory) -> str:
    """List the pods that have no node yet; nothing if there are none."""
    if not found.waiting:
        return ""
    rows = ["\nPods that wait for a node:\nNAME\tNAMESPACE\tASKS\tREASON\n"]
    for pod in found.waiting:
        asks = " ".join((*(f"{name}={text}" for name, text in pod.asks.items()), *pod.claims))
        reason = " ".join(pod.reason.split())
        rows.append("\t".join(map(printable, (pod.name, pod.namespace, asks, reason))) + "\n")
    return aligned("".join(rows))


def aligned(text: str) -> str:
    """Expand elastic tab stops: a column is as wide as its widest cell in the adjacent lines that have it.

    A cell ends with a tab. What follows the last tab of a line belongs to no column and is not padded.
    """
    lines = [line.split("\t") for line in text.split("\n")]
    widths = [[0] * (len(line) - 1) for line in lines]
    for column in range(max(map(len, widths))):
        block: list[int] = []
        for number in range(len(lines) + 1):
            if number < len(lines) and column < len(widths[number]):
                block.append(number)
                continue
            # A line without the column ends the block.
            width = max((len(lines[row][column]) for row in block), default=0) + PADDING
            for row in block:
                widths[row][column] = width
            block = []
    return "\n".join(
        "".join(cell.ljust(width) for cell, width in zip(line, [*sizes, 0], strict=True))
        for line, sizes in zip(lines, widths, strict=True)
    )


def _unit(found: ClusterMemory) -> SizeUnit:
    """GiB where everything is a whole number of them, else MiB, so that sums of different nodes are right."""
    sizes = (*(card.total_bytes for card in found.cards), *(pod.allocated_bytes for pod in found.pods))
    is_round = all(not (size or 0) % GIB for size in sizes)
    return SizeUnit("GiB", GIB) if is_round else SizeUnit("MiB", MIB)


def _columns(nodes: Sequence[NodeMemory], unit: SizeUnit, *, with_use: bool) -> CardColumns:
    indices = {card.index for node in nodes for card in node.cards}
    numbers = {index for index in indices if index is not None}
    # A number without a card has a column too, as in the plugin, but only up to USUAL_CARDS.
    usual = range(min(max(numbers, default=-1) + 1, USUAL_CARDS))
    return CardColumns(
        unit=unit,
        numbers=tuple(sorted({*usual, *numbers})),
        unnumbered=None in indices,
        pending=any(node.pending for node in nodes),
        with_use=with_use,
    )


def _summary_row(node: NodeMemory, columns: CardColumns) -> list[str]:
    pending = columns.unit.known(allocated(node.pending)) if node.pending else ""
    return [
        node.name,
        node.address or NO_ADDRESS,
        *map(columns.share, columns.cards(node)),
        *([pending] if columns.pending else []),
        columns.share(node.cards, node.pending),
    ]


def _pod_rows(node: NodeMemory, columns: CardColumns) -> list[list[str]]:
    """List each pod once, in the order of its first card; those on no card come last."""
    rows = []
    for key in dict.fromkeys(pod.key for pod in node.pods):
        row = [key[1], key[0]]
        row += [columns.pod([pod for pod in _pods(cards) if pod.key == key]) for cards in columns.cards(node)]
        if columns.pending:
            row.append(columns.unit.known(allocated(pod for pod in node.pending if pod.key == key)))
        rows.append(row)
    return rows


def _pods(cards: Iterable[CardMemory]) -> Iterator[PodMemory]:
    return (pod for card in cards for pod in card.pods)


def _narrow_row(pod: PodMemory, columns: CardColumns) -> str:
    return f"\t\t  {columns.pod([pod])} {pod.namespace}/{pod.name}\n"


def _head(node: NodeMemory, columns: CardColumns) -> str:
    heads = ["NAME", "NAMESPACE", *columns.heads("Used/Allocated" if columns.with_use else "Allocated")]
    heads += ["Pending(Allocated)"] if columns.pending else []
    named = f"\nNAME:\t{node.name}\nIPADDRESS:\t{node.address or NO_ADDRESS}\n\n"
    return named + "\t".join(heads) + "\t\n"


def _foot(node: NodeMemory, unit: SizeUnit) -> str:
    given, whole = allocated(node.pods), total(node.cards)
    shown = f"{unit.whole(given)} ({_percent(given, whole)}%)"
    return f"Allocated :\t{shown}\t\nTotal :\t{unit.whole(whole)} \t\n"


def _ratio(found: ClusterMemory, unit: SizeUnit) -> str:
    given, whole = allocated(found.pods), total(found.cards)
    return f"{unit.whole(given)}/{unit.whole(whole)} ({_percent(given, whole)}%)"


def _percent(given: KnownSum, whole: KnownSum) -> str:
    if not (given.is_whole and whole.is_whole):
        return UNKNOWN
    return str(given.size * 100 // whole.size if whole.size else 0)
