"""A client of one of the old systems can ask podgpu at the same address, and gets the same kind of answer."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from podgpu.option.value import NATIVE, Address
from tests.e2e.rig import Answer, Demo, demo, get

SECTION = (Path(__file__).parents[2] / "docs/compatibility.md").read_text().split("\n## ")[1]
FLAG = re.compile(r"--web\.listen-address=([^\s`]+)")
TEXT = "text/plain; version=0.0.4; charset=utf-8"
JSON = "application/json"


@dataclass(frozen=True)
class OldAddress:
    """A line of the documented table."""

    old_port: int
    old_path: str
    dialect: str
    own_path: str

    def __str__(self) -> str:
        return f"{self.dialect}:{self.old_port}{self.old_path}"


def table() -> Iterator[OldAddress]:
    dialect = NATIVE
    for line in re.findall(r"^\|.*`/.*$", SECTION, re.MULTILINE):
        _, old, flag, own = (cell.strip() for cell in line.strip("|").split("|"))
        if found := FLAG.search(flag):
            address = Address.parse(found[1])
            assert old.startswith(f"{address.port} ")
            dialect = address.dialect
        elif flag.startswith("none"):
            dialect = NATIVE
        port, path = re.match(r"(\d+) `(\S+)`", old).groups()  # type: ignore[union-attr]
        yield OldAddress(int(port), path, dialect, own.strip("`"))


ROWS = list(table())


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """The addresses of the table, on ports that are free."""
    dialects = dict.fromkeys([NATIVE, *(row.dialect for row in ROWS)])
    log = tmp_path_factory.mktemp("demo") / "log"
    with demo(dialects, log, "--node-name=gpu-node.1", "--interval=1s") as here:
        yield here


def shape(answer: Answer) -> object:
    """Return the parts of an answer that stay the same from one reading to the next."""
    if answer.content_type == JSON:
        return sorted(answer.json()["usage"]) if b'"usage"' in answer.body else len(answer.json())
    return answer.families or answer.text


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_the_old_address_gives_the_page_of_podgpus_own_path(node: Demo, row: OldAddress) -> None:
    old = get(node.urls[row.dialect] + row.old_path)
    own = get(node.urls[NATIVE] + row.own_path)
    assert (old.status, own.status) == (200, 200)
    assert old.content_type == own.content_type
    assert shape(old) == shape(own)


def test_the_documented_command_opens_every_old_port_once() -> None:
    command = re.search(r"podgpu agent .*?```", SECTION, re.DOTALL)
    assert command
    addresses = [Address.parse(text) for text in FLAG.findall(command[0])]
    ports = {row.old_port for row in ROWS if row.dialect != NATIVE}
    assert sorted(address.port for address in addresses) == sorted({19400, *ports})
    assert {address.dialect for address in addresses} <= {NATIVE, *(row.dialect for row in ROWS)}


@pytest.mark.parametrize(
    ("dialect", "path", "first"),
    [
        ("pod-gpu-map", "/metrics", ["pod_and_gpu_map_info"]),
        ("pod-gpu-map", "/metrics/nodes", ["gpu_node_1_info"]),
        ("gpu-manager", "/metric", ["container_gpu_utilization", "container_request_gpu_utilization"]),
        ("gpu-manager", "/metrics", ["container_gpu_utilization", "container_request_gpu_utilization"]),
        ("dcgm", "/metrics", ["DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_MEM_CLOCK"]),
        ("dcgm", "/gpu/metrics", ["dcgm_gpu_utilization", "dcgm_mem_copy_utilization"]),
        ("gpu-mem-monitor", "/metrics", ["pod_used_gpu_mem_MB"]),
        ("vgpu-monitor", "/metrics", ["pod_gpu_sm_util", "pod_gpu_memory_used", "pod_total_gpu_memory"]),
        ("hami", "/metrics", ["hami_host_gpu_memory_used_bytes", "hami_host_gpu_utilization_ratio"]),
        (NATIVE, "/metrics/cadvisor", ["container_accelerator_memory_total_bytes"]),
    ],
)
def test_the_first_families_are_those_of_the_old_page(node: Demo, dialect: str, path: str, first: list[str]) -> None:
    page = get(node.urls[dialect] + path)
    assert (page.status, page.content_type) == (200, TEXT)
    assert page.families[: len(first)] == first
    assert page.series[0].startswith(f"{first[0]}{{")


def test_a_browser_at_an_old_address_finds_a_page(node: Demo) -> None:
    assert {get(f"{url}/").content_type for url in node.urls.values()} == {"text/html; charset=utf-8"}


class TestContainerMetrics:
    @pytest.fixture
    def url(self, node: Demo) -> str:
        return f"{node.urls['container-json']}/container/metrics"

    def test_it_is_an_array_of_cards_and_containers(self, url: str) -> None:
        answer = get(url)
        assert (answer.status, answer.content_type) == (200, JSON)
        rows = answer.json()
        assert {row["node_name"] for row in rows} == {"gpu-node.1"}
        assert {row["device_id"] for row in rows} == {str(index) for index in range(8)}
        assert {"pod", "container", "namespace", "gpu_utilization", "framebuffer_used"} <= rows[0].keys()

    @pytest.mark.parametrize(
        ("query", "pods"),
        [
            ("pod=notebook-5", {"notebook-5"}),
            ("namespace=speech", {"asr-0", "asr-2"}),
            ("namespace=speech&pod=asr-2&container=server&node=gpu-node.1", {"asr-2"}),
            ("namespace=speech&pod=&colour=red", {"asr-0", "asr-2"}),
            ("namespace=speech&pod=notebook-5", set()),
            ("node=another", set()),
        ],
    )
    def test_filters_must_all_hold(self, url: str, query: str, pods: set[str]) -> None:
        rows = get(f"{url}?{query}").json()
        assert {row["pod"] for row in rows} == pods
        assert isinstance(rows, list)

    @pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE"])
    def test_only_get_is_allowed(self, url: str, method: str) -> None:
        answer = get(url, method)
        assert (answer.status, answer.headers["Allow"]) == (405, "GET")

    def test_an_unknown_value_differs_from_zero(self, url: str) -> None:
        (zero,) = get(f"{url}?pod=notebook-5").json()
        (null,) = get(f"{url}?pod=notebook-5&missing=null").json()
        assert (zero["xid_errors"], null["xid_errors"]) == (0.0, None)
        assert null["gpu_utilization"] == 0.0


def test_usage_lists_what_each_pod_has_and_asked_for(node: Demo) -> None:
    answer = get(f"{node.urls['gpu-manager']}/usage")
    assert (answer.status, answer.content_type) == (200, JSON)
    pods = {tenant["container"]["pod"]: tenant["container"]["pod_uid"] for tenant in node.tenants()}
    usage = answer.json()["usage"]
    assert usage.keys() == set(pods.values())
    idle = usage[pods["notebook-5"]]
    (card,) = idle["stat"]["jupyter"]["dev"]
    assert (idle["project"], card["card_idx"], card["gpu"]) == ("lab", "7", 0.0)
    assert (card["mem"], card["pids"]) == (61440, [81999])
    assert idle["spec"]["jupyter"] == {"gpu": 1.0, "mem": card["device_mem"]}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_every_old_address_is_healthy(node: Demo, method: str) -> None:
    assert {get(f"{url}/healthz", method).status for url in node.urls.values()} == {200}


def test_what_is_not_there_says_what_is(node: Demo) -> None:
    answer = get(f"{node.urls['gpu-manager']}/graph")
    assert answer.status == 404
    assert {"/metric", "/usage"} <= set(answer.text.splitlines())
