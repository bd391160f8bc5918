"""Makes a statement of a period: who had how much, what nobody had, and what it costs."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from podgpu.cluster.report.grouping import Grouping
from podgpu.cluster.report.history import Asked, History, PodFacts, Stretch
from podgpu.cluster.report.line import Account, CardKey, Line, Quantity
from podgpu.cluster.report.tally import Growth, Tally
from podgpu.model import Prices, Statement, StatementLine, total_of

MICRO = 1_000_000


class Heap(Struct):
    """What belongs together. A quantity that nobody measured is not in `sums`; `held` is by the model of the GPU."""

    sums: dict[Quantity, int] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, quantity: Quantity, amount: int, model: str) -> None:
        self.sums[quantity] = self.sums.get(quantity, 0) + amount
        if quantity is Quantity.HELD:
            self.held[model] += amount


class _Books(Struct):
    """All that was counted of one card."""

    by_account: dict[tuple[Account, Quantity], int] = field(default_factory=lambda: defaultdict(int))
    seconds: float = 0.0


async def statement(
    store: Asked,
    period: tuple[float, float],
    grouping: Grouping,
    *,
    prices: Prices | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> Statement:
    """`progress` is called with the part of the period that has been read, from 0 to 1."""
    start, end = period
    history = History(store, grouping.facts)
    tally = Tally(start)
    tally.begin(await history.before(start))
    sums = Sums(grouping)
    async for stretch in history.stretches(start, end):
        sums.add(stretch, tally.grow(stretch.samples))
        progress((stretch.until - start) / (end - start))
    return sums.statement(start, end, prices)


class Sums:
    """Sums that grow stretch by stretch."""

    def __init__(self, grouping: Grouping) -> None:
        self._grouping = grouping
        self._groups: dict[tuple[str, ...], Heap] = {}
        self._cards: dict[CardKey, _Books] = {}
        self._models: dict[CardKey, str] = {}
        self._pods: PodFacts = {}
        self._unattributed = Heap()

    def add(self, stretch: Stretch, grown: Mapping[CardKey, Growth]) -> None:
        self._models.update(stretch.models)
        self._pods.update(stretch.pods)
        for card, growth in grown.items():
            books = self._cards.setdefault(card, _Books())
            books.seconds += growth.seconds
            for line, amount in growth.lines.items():
                books.by_account[line.account, line.quantity] += amount
                self._post(line, amount)

    def _post(self, line: Line, amount: int) -> None:
        model = self._models.get(line.card, "")
        if line.account is Account.UNATTRIBUTED:
            self._unattributed.add(line.quantity, amount, model)
        elif line.account is Account.CONTAINER:
            group = self._grouping.of(line, model, self._pods.get(line.pod_key, ()))
            if group is not None:
                self._groups.setdefault(group, Heap()).add(line.quantity, amount, model)

    def statement(self, start: float, end: float, prices: Prices | None) -> Statement:
        names = self._grouping.columns
        lines = [
            _line("group", heap, prices, dict(zip(names, group, strict=True)))
            for group, heap in self._groups.items()
            if any(heap.sums.values())
        ]
        lines.sort(key=_rank)
        if not self._grouping.is_filtered:
            lines += self._others(prices)
        return Statement(
            start=start,
            end=end,
            by=names,
            lines=tuple(lines),
            total=total_of(lines),
            currency=prices.currency if prices else "",
            gpus=len(self._cards),
            unpriced=self._unpriced(prices),
        )

    def _others(self, prices: Prices | None) -> list[StatementLine]:
        """What the groups lack to what the GPUs themselves counted."""
        unbooked, free = Heap(), Heap()
        for card, books in self._cards.items():
            model = self._models.get(card, "")
            for quantity, amount in _missing(books):
                unbooked.add(quantity, amount, model)
            held = books.by_account.get((Account.CONTAINER, Quantity.HELD), 0)
            free.add(Quantity.HELD, max(round(books.seconds * MICRO) - held, 0), model)
        named = {"unattributed": self._unattributed, "unbooked": unbooked, "free": free}
        return [_line(kind, heap, prices) for kind, heap in named.items() if any(heap.sums.values())]

    def _unpriced(self, prices: Prices | None) -> tuple[str, ...]:
        if prices is None:
            return ()
        models = {self._models.get(card, "") for card in self._cards}
        return tuple(sorted(model or "unknown" for model in models if prices.of(model) is None))


def _missing(books: _Books) -> list[tuple[Quantity, int]]:
    """What a card counted and the books of its containers and of the rest do not have."""
    missing = []
    for quantity in (Quantity.BUSY, Quantity.ENERGY):
        whole = [books.by_account.get((account, quantity)) for account in (Account.BOOKED, Account.METER)]
        known = [one for one in whole if one is not None]
        parts = (Account.CONTAINER, Account.UNATTRIBUTED)
        if known:
            had = sum(books.by_account.get((account, quantity), 0) for account in parts)
            missing.append((quantity, max(known) - had))
    return missing


def _line(kind: str, heap: Heap, prices: Prices | None, group: dict[str, str] | None = None) -> StatementLine:
    return StatementLine(
        kind=kind,
        group=group or {},
        held_us=heap.sums.get(Quantity.HELD),
        busy_us=heap.sums.get(Quantity.BUSY),
        energy_mj=heap.sums.get(Quantity.ENERGY),
        cost=_cost(heap, prices) if prices and Quantity.HELD in heap.sums else None,
    )


def _cost(heap: Heap, prices: Prices) -> float | None:
    """Nothing is said about a cost of which a part is not known."""
    costs = [(prices.of(model), held / (3600 * MICRO)) for model, held in heap.held.items() if held]
    known = [price * hours for price, hours in costs if price is not None]
    return sum(known) if len(known) == len(costs) else None


def _rank(line: StatementLine) -> tuple[int, Sequence[str]]:
    return -(line.held_us or 0), tuple(line.group.values())
