"""The page of dcgm-exporter 1.x with pod-gpu-metrics-exporter."""

import re

from msgspec.structs import replace

from podgpu.catalog import CATALOG
from podgpu.catalog.row import Metric
from podgpu.model import Claim, ContainerRef, Device, Gpu, Reading, Snapshot, Tenant
from podgpu.views.dialects import dcgm_1_x
from podgpu.views.exposition import Format, render
from tests.catalog.dcgm import VERSION_1
from tests.tree import card
from tests.views.dialects.dcgm_node import NODE, uuid

# As shown in its README, where another program has sorted the labels.
README = """\
# HELP dcgm_gpu_temp GPU temperature (in C).
# TYPE dcgm_gpu_temp gauge
dcgm_gpu_temp{container_name="pod1-ctr",gpu="0",pod_name="pod1",pod_namespace="default",uuid="GPU-2b399198-c670-a848-173b-d3400051a200"} 33
dcgm_gpu_temp{container_name="pod1-ctr",gpu="1",pod_name="pod1",pod_namespace="default",uuid="GPU-9567a9e7-341e-bb7e-fcf5-788d8caa50f9"} 34
# HELP dcgm_gpu_utilization GPU utilization (in %).
# TYPE dcgm_gpu_utilization gauge
dcgm_gpu_utilization{container_name="pod1-ctr",gpu="0",pod_name="pod1",pod_namespace="default",uuid="GPU-2b399198-c670-a848-173b-d3400051a200"} 0
dcgm_gpu_utilization{container_name="pod1-ctr",gpu="1",pod_name="pod1",pod_namespace="default",uuid="GPU-9567a9e7-341e-bb7e-fcf5-788d8caa50f9"} 0
# HELP dcgm_low_util_violation Throttling duration due to low utilization (in us).
# TYPE dcgm_low_util_violation counter
dcgm_low_util_violation{container_name="pod1-ctr",gpu="0",pod_name="pod1",pod_namespace="default",uuid="GPU-2b399198-c670-a848-173b-d3400051a200"} 0
dcgm_low_util_violation{container_name="pod1-ctr",gpu="1",pod_name="pod1",pod_namespace="default",uuid="GPU-9567a9e7-341e-bb7e-fcf5-788d8caa50f9"} 0
# HELP dcgm_mem_copy_utilization Memory utilization (in %).
# TYPE dcgm_mem_copy_utilization gauge
dcgm_mem_copy_utilization{container_name="pod1-ctr",gpu="0",pod_name="pod1",pod_namespace="default",uuid="GPU-2b399198-c670-a848-173b-d3400051a200"} 0
dcgm_mem_copy_utilization{container_name="pod1-ctr",gpu="1",pod_name="pod1",pod_namespace="default",uuid="GPU-9567a9e7-341e-bb7e-fcf5-788d8caa50f9"} 0
# HELP dcgm_memory_clock Memory clock frequency (in MHz).
# TYPE dcgm_memory_clock gauge
dcgm_memory_clock{container_name="pod1-ctr",gpu="0",pod_name="pod1",pod_namespace="default",uuid="GPU-2b399198-c670-a848-173b-d3400051a200"} 810
dcgm_memory_clock{container_name="pod1-ctr",gpu="1",pod_name="pod1",pod_namespace="default",uuid="GPU-9567a9e7-341e-bb7e-fcf5-788d8caa50f9"} 810
"""  # noqa: E501
CARDS = ("GPU-2b399198-c670-a848-173b-d3400051a200", "GPU-9567a9e7-341e-bb7e-fcf5-788d8caa50f9")


def node_of_the_readme() -> Snapshot:
    def readings(celsius: float) -> tuple[Reading, ...]:
        return (
            Reading("temperature_celsius", celsius, ("gpu",)),
            Reading("utilization_ratio", 0.0),
            Reading("throttle_seconds_total", 0.0, ("low_utilization",)),
            Reading("memory_utilization_ratio", 0.0),
            Reading("clock_hertz", 810e6, ("memory",)),
        )

    container = ContainerRef("default", "pod1", "pod1-ctr")
    return Snapshot(
        node="n",
        taken_at=0.0,
        interval_seconds=5.0,
        version="0",
        cards=tuple(
            card(
                Device(gpu=Gpu(uuid=card_uuid, index=index), readings=readings(33 + index)),
                tenants=[Tenant(container=container, claims=(Claim(gpu=card_uuid, container=container),))],
            )
            for index, card_uuid in enumerate(CARDS)
        ),
    )


def text(snapshot: Snapshot) -> str:
    return render(dcgm_1_x.families(snapshot, None), Format.TEXT).decode()


def as_shown(line: str) -> str:
    """Write a line as node-exporter does: labels sorted, whole numbers without a point."""
    if line.startswith("#"):
        return line
    name, labels, value = re.fullmatch(r"(\w+)\{(.*)\} (\S+)", line).groups()  # type: ignore[union-attr]
    return f"{name}{{{','.join(sorted(labels.split(',')))}}} {float(value):g}"


def test_the_facts_of_the_readmes_sample_give_the_sample() -> None:
    ours = [as_shown(line) for line in text(node_of_the_readme()).splitlines()]
    assert sorted(ours) == sorted(README.splitlines())


def test_labels_are_in_the_order_of_the_exporter_itself() -> None:
    line = (
        f'dcgm_gpu_temp{{gpu="0",uuid="{CARDS[0]}",pod_name="pod1",pod_namespace="default",'
        'container_name="pod1-ctr"} 33\n'
    )
    assert line in text(node_of_the_readme())


def test_a_card_without_a_pod_or_with_several_has_two_labels() -> None:
    temperatures = [line for line in text(NODE).splitlines() if line.startswith("dcgm_gpu_temp{")]
    assert f'dcgm_gpu_temp{{gpu="1",uuid="{uuid(1)}"}} 56' in temperatures
    assert f'dcgm_gpu_temp{{gpu="2",uuid="{uuid(2)}"}} 56' in temperatures


def test_a_card_split_by_mig_has_one_row_and_no_pod() -> None:
    used = [line for line in text(NODE).splitlines() if line.startswith('dcgm_fb_used{gpu="3"')]
    assert used == [f'dcgm_fb_used{{gpu="3",uuid="{uuid(3)}"}} 30719']


def test_a_card_without_an_xid_shows_0() -> None:
    assert f'dcgm_xid_errors{{gpu="1",uuid="{uuid(1)}"}} 0' in text(NODE).splitlines()


def test_all_forty_names_are_there_if_a_card_reports_everything() -> None:
    readings = tuple(_reading(row) for row in CATALOG if row.dcgm1x)
    told = card(Device(gpu=Gpu(uuid="GPU-a", index=0), readings=readings))
    page = dcgm_1_x.families(replace(NODE, cards=(told,)), None)
    assert {family.name: (family.kind.value, family.help) for family in page} == VERSION_1


def _reading(row: Metric) -> Reading:
    return Reading(row.name, 1.0, row.label_values)


def test_it_is_served_at_its_old_path_too() -> None:
    assert set(dcgm_1_x.DIALECT.pages) == {"/metrics/dcgm-1.x", "/gpu/metrics"}
    assert len({id(view) for view in dcgm_1_x.DIALECT.pages.values()}) == 1
