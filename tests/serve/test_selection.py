"""`?collect[]=` and `?name[]=`, over real sockets."""

import pytest
from msgspec.structs import replace

from podgpu.assembly.server import open_pages
from podgpu.config.precedence import load
from podgpu.errors import UserError
from podgpu.model import Reading
from tests.serve.rig import Answer, StubNode, fetch, serving
from tests.views.quirks import BUSY, SNAPSHOT

LEFT_OUT = "podgpu_gpu_compute_mode"


async def asked(path: str, **flags: list[str]) -> Answer:
    node = StubNode()
    card = replace(BUSY, readings=(*BUSY.readings, Reading("compute_mode", 0.0)))
    node.current = replace(SNAPSHOT, cards=(card,))
    async with serving(node, registry=open_pages(load(flags, {}))) as server:
        return await fetch(server, path)


def names(answer: Answer) -> set[str]:
    assert answer.status == 200
    return {line.split()[2] for line in answer.text.splitlines() if line.startswith("# TYPE")}


async def test_names_choose_families_even_such_as_the_page_leaves_out() -> None:
    assert LEFT_OUT not in names(await asked("/metrics"))
    path = f"/metrics?name[]=podgpu_up&name[]={LEFT_OUT}&name[]=podgpu_nothing"
    assert names(await asked(path)) == {"podgpu_up", LEFT_OUT}


async def test_groups_choose_families_together() -> None:
    found = names(await asked("/metrics?collect[]=temperature&collect%5B%5D=presence&name[]=podgpu_up"))
    assert {"podgpu_up", "podgpu_gpu_up", "podgpu_gpu_info", "podgpu_gpu_temperature_celsius"} <= found
    assert not any("memory" in name for name in found)


async def test_a_dialect_s_families_are_chosen_by_name() -> None:
    path = "/metrics/dcgm?name[]=DCGM_FI_DEV_GPU_TEMP"
    assert names(await asked(path)) == {"DCGM_FI_DEV_GPU_TEMP"}


@pytest.mark.parametrize("path", ["/metrics/dcgm", "/metrics/dcgm-4.9"])
async def test_a_client_can_ask_for_fields_that_no_counters_file_lists(path: str) -> None:
    assert "DCGM_FI_DEV_MIG_MODE" not in names(await asked(path))
    assert names(await asked(f"{path}?name[]=DCGM_FI_DEV_MIG_MODE")) == {"DCGM_FI_DEV_MIG_MODE"}


@pytest.mark.parametrize(
    ("path", "group", "some"),
    [
        ("/metrics/dcgm", "temperature", "DCGM_FI_DEV_GPU_TEMP"),
        ("/metrics/dcgm-4.9", "memory", "DCGM_FI_DEV_FB_USED_BYTES"),
        ("/metrics/dcgm-1.x", "power", "dcgm_power_usage"),
        ("/gpu/metrics", "power", "dcgm_power_usage"),
        ("/metrics/pod-gpu-map", "pods", "pod_and_gpu_map_info"),
        ("/metrics/nodes", "pods", "gpu_node_1_info"),
        ("/metric", "containers", "container_gpu_utilization"),
        ("/metrics/gpu-mem-monitor", "containers", "pod_used_gpu_mem_MB"),
        ("/metrics/vgpu-monitor", "containers", "pod_gpu_memory_used"),
        ("/metrics/cadvisor", "containers", "container_accelerator_memory_used_bytes"),
        ("/metrics/hami", "temperature", "hami_host_gpu_temperature_celsius"),
    ],
)
async def test_groups_choose_families_of_every_page(path: str, group: str, some: str) -> None:
    found = names(await asked(f"{path}?collect[]={group}"))
    assert some in found
    # dcgm-exporter's pages have more than they show.
    assert found <= names(await asked(path)) or path in ("/metrics/dcgm", "/metrics/dcgm-4.9")
    assert names(await asked(f"{path}?collect[]=waiting")) == set()


def test_every_page_of_an_agent_is_tested_here() -> None:
    tested = {path for path, _, _ in test_groups_choose_families_of_every_page.pytestmark[0].args[1]}  # type: ignore[attr-defined]
    same = {"/metrics/native", "/metrics/gpu-manager"}
    assert open_pages(load({}, {})).pages.keys() - same == tested


async def test_an_unknown_group_is_refused_with_advice() -> None:
    refused = await asked("/metrics/dcgm?collect[]=powr")
    assert (refused.status, refused.text) == (400, "there is no group 'powr'; did you mean power?\n")


async def test_what_is_denied_or_not_allowed_is_served_to_nobody() -> None:
    assert names(await asked(f"/metrics?name[]={LEFT_OUT}", series_deny=[LEFT_OUT])) == set()
    assert names(await asked("/metrics?name[]=podgpu_up", series_allow=["podgpu_gpu_*"])) == set()
    found = names(await asked("/metrics/dcgm", series_deny=["DCGM_FI_DEV_GPU_TEMP"]))
    assert found and "DCGM_FI_DEV_GPU_TEMP" not in found


async def test_one_option_brings_the_rest() -> None:
    assert LEFT_OUT in names(await asked("/metrics", series_detail=["on"]))


def test_a_name_that_no_metric_has_is_refused() -> None:
    with pytest.raises(UserError, match="did you mean podgpu_gpu_up"):
        load({"series_allow": ["podgpu_gpu_upp"]}, {})
    with pytest.raises(UserError, match="is not the name of a metric"):
        load({"series_deny": ["a-b"]}, {})


def test_the_old_name_of_the_level_still_works() -> None:
    config = load({"series_processes": ["on"]}, {})
    assert (config.series_level, config.outdated) == ("process", (("--series.processes", "--series.level"),))
