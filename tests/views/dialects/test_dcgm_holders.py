"""Which pod a row of dcgm-exporter's pages names."""

from podgpu.views.dialects import dcgm_1_x, dcgm_4_9
from tests.views.dialects.dcgm_node import PAIR
from tests.views.dialects.test_dcgm import rows


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
