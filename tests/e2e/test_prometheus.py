"""A real Prometheus scrapes every page of a real agent, and knows afterwards what the agent knows."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from podgpu.option.value import NATIVE
from podgpu.views.dialects import dialects
from tests.e2e.asked.hami import ASKED
from tests.e2e.facts import MIB, Facts, Rows
from tests.e2e.prometheus import OWN, PROGRAM, Job, Prometheus, prometheus
from tests.e2e.rig import Demo, demo, eventually, get

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="prometheus is not installed")

PATHS = [path for dialect in dialects() for path in dialect.pages]
NAMES = [path.removeprefix("/metrics/") for path in PATHS if path.startswith("/metrics/")]
NODE = "gpu-node.1"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    log = tmp_path_factory.mktemp("demo") / "log"
    flags = (f"--node-name={NODE}", "--interval=1s", "--dialect.hami.names=both")
    with demo([NATIVE, *NAMES], log, *flags) as here:
        yield here


@pytest.fixture(scope="module")
def jobs(node: Demo) -> list[Job]:
    """Every page by its path in both formats, and every dialect at its own address."""
    main = node.urls[NATIVE]
    pages = [Job(path, main + path) for path in ("/metrics", *PATHS)]
    texts = [Job(f"text {page.name}", page.url, as_text=True) for page in pages]
    return [*pages, *texts, *(Job(name, f"{node.urls[name]}/metrics") for name in NAMES)]


@pytest.fixture(scope="module")
def scraper(jobs: list[Job], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with prometheus(jobs, tmp_path_factory.mktemp("prometheus")) as here:
        names = {job.name for job in jobs}
        eventually(lambda: {job for job, target in here.targets().items() if target["health"] == "up"} == names)
        yield here


@pytest.fixture(scope="module")
def scraped(scraper: Prometheus, jobs: list[Job]) -> Prometheus:
    """As of a moment at which every page had been scraped."""
    return scraper.when(f"count(up == 1) == {len(jobs)}")


@pytest.fixture(scope="module")
def facts(node: Demo) -> Facts:
    return Facts(node.snapshot())


def test_every_target_is_up(scraper: Prometheus, jobs: list[Job]) -> None:
    def state() -> dict[str, tuple[str, str]]:
        return {job: (target["health"], target["lastError"]) for job, target in scraper.targets().items()}

    wanted = {job.name: ("up", "") for job in jobs}
    assert eventually(state, lambda found: found == wanted) == wanted


@pytest.mark.parametrize(
    "counted",
    [
        "scrape_samples_scraped",
        "scrape_samples_post_metric_relabeling",
        f'count by (job) ({{__name__!~"{OWN}", job!=""}})',
    ],
)
def test_not_one_series_is_lost(scraper: Prometheus, jobs: list[Job], counted: str) -> None:
    """The last number counts stored series: a series that was twice on a page would be stored once."""

    def counts() -> tuple[dict[str, float], dict[str, float]]:
        return {job.name: len(get(job.url).series) for job in jobs}, scraper.by_job(counted)

    pages, stored = eventually(counts, lambda pair: pair[0] == pair[1])
    assert stored == pages
    assert all(pages.values())


def test_nothing_is_complained_of(scraper: Prometheus) -> None:
    assert eventually(lambda: min(scraper.by_job("count_over_time(up[1h])").values()) > 2)
    complaint = re.compile("level=(warn|error)|error on ingesting|duplicate sample|out.of.order sample", re.IGNORECASE)
    assert not [line for line in scraper.log.read_text().splitlines() if complaint.search(line)]


def test_a_counter_of_another_system_stays_one_in_whatever_format_prometheus_asks_for(
    scraper: Prometheus,
) -> None:
    """To OpenMetrics a counter is one only if its name ends in `_total`, so these pages are text."""
    assert scraper.types("DCGM_FI_DEV_PCIE_REPLAY_COUNTER") == {
        "/metrics/dcgm": "counter",
        "dcgm": "counter",
        "text /metrics/dcgm": "counter",
    }


def test_both_formats_of_podgpu_s_own_page_were_scraped(scraper: Prometheus) -> None:
    assert scraper.types("podgpu_build") == {"/metrics": "info"}
    assert scraper.types("podgpu_build_info") == {"text /metrics": "gauge"}


@dataclass(frozen=True)
class Question:
    """A query of a dialect, the labels to look at, and what they and the value should be."""

    dialect: str
    query: str
    labels: str
    rows: Callable[[Facts], Rows]


def mapped(facts: Facts) -> Rows:
    return {(given.part.uuid, given.part.model, given.namespace, facts.node, given.pod, 1.0) for given in facts.given}


QUESTIONS = [
    Question(
        NATIVE,
        "podgpu_gpu_memory_total_bytes",
        "node gpu uuid",
        lambda facts: {(facts.node, str(card.index), card.uuid, card.memory_total) for card in facts.cards},
    ),
    Question("pod-gpu-map", "pod_and_gpu_map_info", "gpu_id gpu_model namespace node pod_name", mapped),
    Question("nodes", "gpu_node_1_info", "gpu_id gpu_model namespace node pod_name", mapped),
    Question(
        "dcgm",
        "group by (UUID, GPU_I_ID, modelName, Hostname, namespace, pod, container) (DCGM_FI_DEV_GPU_TEMP)",
        "UUID GPU_I_ID modelName Hostname namespace pod container",
        lambda facts: {
            (part.card, part.instance, part.model, facts.node, *facts.sole_holder(part), 1.0)
            for part in facts.undivided
        },
    ),
    Question(
        "dcgm-4.9",
        "DCGM_FI_DEV_FB_CAPACITY_BYTES",
        "UUID GPU_I_ID",
        lambda facts: {(part.card, part.instance, part.memory_total) for part in facts.undivided},
    ),
    Question(
        "dcgm-1.x",
        "group by (gpu, uuid, pod_namespace, pod_name, container_name) (dcgm_gpu_temp)",
        "gpu uuid pod_namespace pod_name container_name",
        lambda facts: {(str(card.index), card.uuid, *facts.sole_holder(card), 1.0) for card in facts.cards},
    ),
    Question(
        "gpu-manager",
        "round(container_request_gpu_utilization * 10000)",
        "namespace pod_name container_name",
        Facts.allocated,
    ),
    Question(
        "gpu-mem-monitor",
        "group by (app_pid, gpu_uuid, pod_name) (pod_used_gpu_mem_MB)",
        "app_pid gpu_uuid pod_name",
        lambda facts: {(pid, card, pod or "null", 1.0) for pid, card, pod in facts.processes()},
    ),
    Question(
        "vgpu-monitor",
        "pod_total_gpu_memory",
        "gpu_id pod",
        lambda facts: {
            (str(given.part.index), given.pod, (given.limit or given.share * given.part.memory_total) // MIB)
            for given in facts.given
        },
    ),
    Question(
        "cadvisor",
        "container_accelerator_memory_total_bytes",
        "acc_id model namespace pod container",
        lambda facts: {
            (given.part.uuid, given.part.model, *given.who, given.part.memory_total) for given in facts.given
        },
    ),
    Question(
        "hami",
        "hami_vgpu_memory_limit_bytes",
        "device_uuid namespace pod container",
        lambda facts: {(given.part.uuid, *given.who, given.limit) for given in facts.given if given.system == "hami"},
    ),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.dialect)
def test_a_query_finds_what_the_snapshot_says(scraped: Prometheus, facts: Facts, question: Question) -> None:
    """Every address, path and format gives the same: any difference would be another row."""
    names = question.labels.split()
    found = scraped.query(question.query)
    rows = {(*(labels.get(name, "") for name in names), value) for labels, value in found}
    assert rows == question.rows(facts)


def test_no_dialect_is_left_without_a_query() -> None:
    assert {question.dialect for question in QUESTIONS} == {NATIVE, *NAMES}


@pytest.mark.parametrize(
    "bytes_of_it",
    [
        'podgpu_container_memory_used_bytes{pod="notebook-5"}',
        'container_accelerator_memory_used_bytes{pod="notebook-5"}',
        'container_gpu_memory_total{pod_name="notebook-5", gpu_memory="total"} * 1024 * 1024',
        'pod_used_gpu_mem_MB{pod_name="notebook-5"} * 1024 * 1024',
        'pod_gpu_memory_used{pod="notebook-5"} * 1024 * 1024',
    ],
)
def test_all_agree_on_the_memory_of_an_idle_pod(scraped: Prometheus, facts: Facts, bytes_of_it: str) -> None:
    assert {value for _, value in scraped.query(bytes_of_it)} == {facts.memory_used("notebook-5")}


def test_hami_s_dashboards_have_their_answers(scraped: Prometheus) -> None:
    """Those that one node cannot give are listed with the reason."""
    empty = {asked.expression for asked in ASKED if not scraped.query(asked.expression)}
    assert empty == {asked.expression for asked in ASKED if asked.missing}
