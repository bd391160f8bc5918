"""Which pods the rows of dcgm-exporter's pages name."""

import pytest

from podgpu.config.precedence import load
from podgpu.model import Snapshot
from podgpu.views.dialects import dcgm, dcgm_1_x, dcgm_4_9
from podgpu.views.dialects._dcgm.counters import DcgmPageOptions
from tests.conftest import Golden
from tests.views.dialects.dcgm_node import MIXED, PAIR, TOGETHER, TRIO
from tests.views.dialects.test_dcgm import DEFAULT, PER_CONTAINER, page, rows

NODES = {"pair": PAIR, "trio": TRIO, "mig-beside-shared": MIXED, "dra-shared": TOGETHER}
WITH_POD = load({"dcgm_pod_uid": ["on"], "dcgm_pod_labels": ["on"]}, {}).of(DcgmPageOptions)


@pytest.mark.parametrize("name", NODES)
def test_the_pages_of_shared_cards(name: str, golden: Golden) -> None:
    node = NODES[name]
    golden(f"dialects/dcgm/{name}.prom", page(dcgm, DEFAULT, node))
    golden(f"dialects/dcgm/{name}-per-container.prom", page(dcgm, PER_CONTAINER, node))
    golden(f"dialects/dcgm-1.x/{name}.prom", page(dcgm_1_x, DEFAULT, node))


def test_a_pod_whose_containers_share_a_card_is_named() -> None:
    for name in ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_TEMP"):
        ((labels, _),) = rows(name, 0, snapshot=PAIR)
        assert (labels["namespace"], labels["pod"], labels["container"]) == ("team-a", "train-0", "")
    ((labels, _),) = rows("DCGM_FI_DEV_GPU_UTIL_RATIO", 0, dcgm_4_9, snapshot=PAIR)
    assert labels["pod"] == "train-0"


def test_it_is_named_on_the_page_of_1_x_too() -> None:
    ((labels, _),) = rows("dcgm_gpu_temp", 0, dcgm_1_x, snapshot=PAIR)
    assert labels["pod_name"] == "train-0"
    assert labels["pod_namespace"] == "team-a"
    assert labels["container_name"] == ""


def test_its_containers_have_rows_of_their_own_if_asked_for() -> None:
    found = rows("DCGM_FI_DEV_FB_USED", 0, config=PER_CONTAINER, snapshot=PAIR)
    assert {labels.get("container"): value for labels, value in found} == {
        "main": 20480, "sidecar": 4096, None: 6143,
    }  # fmt: skip


def test_a_device_that_two_pods_share_by_a_claim_has_a_row_for_each() -> None:
    for name, values in (("DCGM_FI_DEV_GPU_TEMP", [56, 56]), ("DCGM_FI_DEV_GPU_UTIL", [30, 30, 20])):
        found = rows(name, 0, snapshot=TOGETHER)
        assert [labels.get("pod") for labels, _ in found][:2] == ["dynamic", "part"]
        assert {labels.get("dra_claim_name") for labels, _ in found[:2]} == {"together"}
        assert [value for _, value in found] == values


@pytest.mark.parametrize(
    ("environment", "value"), [("true", "on"), ("TRUE", "on"), ("1", "on"), ("false", "off"), ("on", "on")]
)
def test_the_variable_of_dcgm_exporter_is_understood(environment: str, value: str) -> None:
    assert load({}, {"KUBERNETES_VIRTUAL_GPUS": environment}).of(DcgmPageOptions).per_container == value


def test_the_pods_uid_and_labels_stand_on_its_rows_if_asked_for() -> None:
    assert "pod_uid" not in first(TOGETHER, DEFAULT)
    labels = first(TOGETHER, WITH_POD)
    assert labels["pod_uid"] == "uid-dynamic"
    assert labels["app_kubernetes_io_name"] == "llm"
    assert labels["_2nd"] == "b"
    assert labels["pod"] == "dynamic"  # not what the pod says of itself


def first(snapshot: Snapshot, config: DcgmPageOptions) -> dict[str, str]:
    return rows("DCGM_FI_DEV_GPU_TEMP", 0, config=config, snapshot=snapshot)[0][0]
