"""Series and bytes of a page, by what they are about."""

import gzip
from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from bench.figure import Figure
from podgpu.catalog.row import Worth
from podgpu.model import Card, Cluster, ClusterNode, Snapshot
from podgpu.views.cluster.json import slim
from podgpu.views.cluster.metrics import of_cluster, of_node
from podgpu.views.exposition import Format, render
from podgpu.views.json import encode
from podgpu.views.native import families
from podgpu.views.series import Family, SeriesFilter

DEFAULT = SeriesFilter()
CHOICES = {
    "detail on": SeriesFilter(detail=True),
    "level node": SeriesFilter(level="node"),
    "level pod": SeriesFilter(level="pod"),
    "level process": SeriesFilter(level="process"),
}


def run(node: Snapshot) -> list[Figure]:
    figures = [_figure(name, size) for name, size in unit_sizes(node).items()]
    figures.append(_figure(f"the demo's node: {len(node.cards)} GPUs, {tenants_of(node)} containers", Size(node)))
    figures += [_figure(f"the same, {name}", Size(node, choice)) for name, choice in CHOICES.items()]
    return [*figures, *_documents(node), _cluster(node)]


def unit_sizes(node: Snapshot) -> dict[str, "Size"]:
    """What the agent itself takes, and what each further GPU, MIG instance, container and pod adds."""
    plain = [card for card in node.cards if not card.gpu.mig_enabled]
    divided = next(card for card in node.cards if card.gpu.mig_enabled)
    bare = replace(node, pods=(), cards=())
    small = replace(bare, cards=(_empty(plain[0]),))
    two = replace(bare, cards=tuple(map(_empty, plain[:2])))
    tenants = sum(len(card.tenants) for card in plain)
    held = replace(node, cards=tuple(plain), pods=())
    unheld = replace(held, cards=tuple(replace(card, tenants=()) for card in plain))
    return {
        "agent": Size(bare),
        "gpu": Size(two).less(Size(small)),
        "mig": _instance(bare, divided),
        "container": Size(held).less(Size(unheld)).by(tenants),
        "pod": Size(node).less(Size(replace(node, pods=()))).by(len(node.pods)),
    }


def _instance(bare: Snapshot, divided: Card) -> "Size":
    whole = Size(replace(bare, cards=(replace(_empty(divided), instances=divided.instances),)))
    return whole.less(Size(replace(bare, cards=(_empty(divided),)))).by(len(divided.instances))


def tenants_of(node: Snapshot) -> int:
    return sum(len(card.tenants) for card in node.cards)


class Size:
    """Series, bytes and compressed bytes of a page, and series by how important they are."""

    def __init__(self, snapshot: Snapshot, choice: SeriesFilter = DEFAULT) -> None:
        made = families(snapshot, {}, choice=choice)
        page = render(made, Format.TEXT)
        self.series = float(sum(len(page.samples) for page in made))
        self.bytes = float(len(page))
        self.zipped = float(len(gzip.compress(page, 5)))
        self.worth = _by_worth(made)

    def less(self, other: "Size") -> "Size":
        self.series -= other.series
        self.bytes -= other.bytes
        self.zipped -= other.zipped
        self.worth = {worth: self.worth.get(worth, 0.0) - other.worth.get(worth, 0.0) for worth in Worth}
        return self

    def by(self, number: int) -> "Size":
        self.series /= number
        self.bytes /= number
        self.zipped /= number
        self.worth = {worth: count / number for worth, count in self.worth.items()}
        return self


def _by_worth(made: Iterable[Family]) -> Mapping[Worth, float]:
    found: Counter[Worth] = Counter()
    for page in made:
        found[page.worth] += len(page.samples)
    return {worth: float(count) for worth, count in found.items()}


def _figure(name: str, size: Size) -> Figure:
    levels = ", ".join(f"{worth.name.lower()} {size.worth.get(worth, 0.0):.0f}" for worth in reversed(Worth))
    text = f"{size.series:.0f} series, {size.bytes:.0f} B, {size.zipped:.0f} B gzip ({levels})"
    return Figure(f"page, {name}", text)


def _empty(card: Card) -> Card:
    """A card without a tenant."""
    return replace(card, tenants=(), ended=(), instances=())


def _documents(node: Snapshot) -> list[Figure]:
    whole, small = encode(node), encode(slim(node))
    return [
        Figure("JSON of that node", f"{len(whole)} B, {len(gzip.compress(whole, 5))} B gzip"),
        Figure("slim JSON of that node", f"{len(small)} B, {len(gzip.compress(small, 5))} B gzip"),
    ]


def _cluster(node: Snapshot) -> Figure:
    each, whole = cluster_series(node)
    return Figure("page of podgpu cluster", f"{each} series for each such node, {whole} besides")


def cluster_series(node: Snapshot) -> tuple[int, int]:
    """What the page of `podgpu cluster` has for a node like that, and for the cluster as a whole."""
    shown = ClusterNode(name=node.node, state="fresh", origin="agent", snapshot=node)
    cluster = Cluster(taken_at=node.taken_at, version=node.version, nodes=(shown,))
    each, whole = (sum(len(family.samples) for family in made) for made in (of_node(shown), of_cluster(cluster)))
    return each, whole
