"""What a store has of GPUs and nodes besides podgpu's own counters."""

from podgpu.cluster.report.counters import CardKey
from podgpu.cluster.report.evidence import gather
from podgpu.cluster.store.client import Store
from podgpu.cluster.store.options import StoreOptions
from podgpu.cluster.store.response import DecodeBudget, Point, Series

DAY = 86_400.0
CARD = CardKey("", "alpha", "GPU-1")


class KubernetesStore(Store):
    """A store with kube-state-metrics: when it had each node first and last, and how many GPUs a node has."""

    def __init__(
        self,
        nodes: dict[str, tuple[float, float]],
        capacity: tuple[Point, ...] = (),
        labels: tuple[Point, ...] = (),
        created: dict[str, float] | None = None,
    ) -> None:
        super().__init__(StoreOptions(url="http://127.0.0.1:1"))
        self._nodes = nodes
        self._capacity, self._labels = capacity, labels
        self._created = created or {}

    async def points(self, query: str, at: float, budget: DecodeBudget | None = None) -> list[Point]:
        if "kube_node_status_capacity" in query:
            return list(self._capacity)
        if "kube_node_labels" in query:
            return list(self._labels)
        if "kube_node_created" in query:
            return [Point({"node": node}, at) for node, at in self._created.items()]
        if "kube_node_info" in query:
            which = 0 if query.startswith("min") else 1
            return [Point(_labels(name), times[which]) for name, times in self._nodes.items()]
        return []

    async def series(self, query: str, at: float, budget: DecodeBudget | None = None) -> list[Series]:
        return []


def _labels(name: str) -> dict[str, str]:
    """`alpha/v1.30` is node alpha with that kubelet. `beta>alpha` is alpha, scraped without honor_labels from beta."""
    node, _, version = name.partition("/")
    scraped, _, moved = node.partition(">")
    return {"node": scraped, "kubelet_version": version, "cluster": "c"} | ({"exported_node": moved} if moved else {})


async def times(store: KubernetesStore) -> object:
    found = await gather(store, (0.0, DAY), 2 * DAY, [CARD])
    return found.node_times and found.node_times["", "alpha"]


async def test_a_node_that_left_while_others_stayed_is_gone() -> None:
    assert await times(KubernetesStore({"alpha": (0, 60_000), "beta": (0, DAY)})) == [(0.0, 60_000)]


async def test_if_all_nodes_end_together_the_store_was_away() -> None:
    assert await times(KubernetesStore({"alpha": (0, 60_000), "beta": (0, 60_030)})) == [(0.0, DAY)]


async def test_if_all_nodes_begin_together_they_were_there_before() -> None:
    assert await times(KubernetesStore({"alpha": (9_000, DAY), "beta": (9_000, DAY)})) == [(0.0, DAY)]


async def test_when_a_node_was_created_counts_more_than_its_first_sample() -> None:
    store = KubernetesStore({"alpha": (9_000, DAY), "beta": (0, DAY)}, created={"alpha": 8_000})
    assert await times(store) == [(8_000, DAY)]


async def test_a_node_whose_kubelet_was_upgraded_stayed() -> None:
    nodes = {"alpha/v1.31": (60_060.0, DAY), "alpha/v1.30": (0.0, 60_000.0), "beta": (0.0, DAY)}
    assert await times(KubernetesStore(nodes)) == [(0.0, DAY)]


async def test_a_scrape_without_honor_labels_does_not_hide_the_nodes() -> None:
    assert await times(KubernetesStore({"beta>alpha": (0, 60_000), "beta>beta": (0, DAY)})) == [(0.0, 60_000)]


async def test_a_store_without_kube_state_metrics_knows_nothing_of_nodes() -> None:
    assert await times(KubernetesStore({})) is None


async def test_a_node_without_an_agent_is_counted_by_its_labels() -> None:
    capacity = (
        Point({"node": "alpha", "resource": "nvidia_com_gpu"}, 8),  # it has an agent
        Point({"node": "dark", "resource": "nvidia_com_gpu"}, 8),
        Point({"node": "sliced", "resource": "nvidia_com_gpu"}, 8),
        Point({"node": "mig", "resource": "nvidia_com_mig_1g_10gb"}, 7),
    )
    labels = (
        Point({"node": "sliced", "label_nvidia_com_gpu_replicas": "4"}, 1),
        Point({"node": "dark", "label_nvidia_com_gpu_product": "NVIDIA-L40S-SHARED"}, 1),
    )
    found = await gather(KubernetesStore({}, capacity, labels), (0.0, DAY), 2 * DAY, [CARD])
    numbers = {node: sum(card.node == node for card in found.unscraped) for node in ("alpha", "dark", "sliced", "mig")}
    assert numbers == {"alpha": 0, "dark": 8, "sliced": 2, "mig": 1}
    assert found.unscraped[CardKey("", "dark", "dark/0")] == "NVIDIA L40S"


async def test_where_series_name_their_cluster_a_node_is_that_of_its_cluster() -> None:
    store = KubernetesStore({"alpha": (0, 60_000), "beta": (0, DAY)})
    found = await gather(store, (0.0, DAY), 2 * DAY, [CardKey("c", "alpha", "GPU-1")])
    assert found.node_times == {("c", "alpha"): [(0.0, 60_000)]}


class PastAndFuture(KubernetesStore):
    """GPU-0 was there before the day, GPU-2 after it."""

    async def points(self, query: str, at: float, budget: DecodeBudget | None = None) -> list[Point]:
        if "podgpu_gpu_info" in query:
            return [Point({"node": "alpha", "uuid": f"GPU-{at / DAY:.0f}"}, 1)]
        return await super().points(query, at, budget)


async def test_gpus_are_known_from_before_and_from_after() -> None:
    found = await gather(PastAndFuture({}), (0.0, DAY), 2 * DAY, [CARD])
    assert [{card.uuid for card in cards} for cards in (found.earlier, found.later)] == [{"GPU-0"}, {"GPU-2"}]
    found = await gather(PastAndFuture({}), (0.0, DAY), DAY + 0.5, [CARD])
    assert found.later == frozenset()  # the day has only just ended
