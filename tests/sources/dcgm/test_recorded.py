"""Pages that users published, each with what a person reads on it."""

import pytest
from msgspec import Struct

from podgpu.model import Ability
from podgpu.sources.dcgm.reading import read
from tests.sources.dcgm.exporter import RECORDED, recorded
from tests.sources.dcgm.found import MIB, Key, names, values


class Expected(Struct):
    """`cards` by index: UUID and model. `values` of the card with the lowest index, `absent` of all."""

    cards: dict[int, tuple[str, str]]
    values: dict[Key, float] = {}
    absent: tuple[Key, ...] = ()
    pods: tuple[str, ...] = ()
    instances: dict[int, tuple[str, dict[Key, float]]] = {}
    driver: str = ""


T4 = "Tesla T4"
A800 = "NVIDIA A800-SXM4-80GB"
V100 = "Tesla V100-SXM2-32GB"
MEMORY_HEAT: Key = ("temperature_celsius", "memory")
GPU_HEAT: Key = ("temperature_celsius", "gpu")
SLICE: dict[Key, float] = {
    ("memory_used_bytes",): 10 * MIB,
    ("memory_free_bytes",): 19957 * MIB,
    ("graphics_engine_active_ratio",): 0.0,
    ("dram_active_ratio",): 0.0,
    ("tensor_active_ratio",): 0.0,
}

PAGES = {
    "blog_illustrative_a100_extended_fields": Expected(
        {0: ("GPU-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", "NVIDIA A100-SXM4-80GB")},
        {
            ("utilization_ratio",): 0.91,
            ("memory_total_bytes",): 81920 * MIB,
            ("energy_joules_total",): 257858.316,
            ("power_limit_requested_watts",): 400.0,
            ("ecc_enabled",): 1.0,
            MEMORY_HEAT: 32.0,
        },
        absent=(
            ("nvlink_transmit_bytes_per_second",),
            ("nvlink_receive_bytes_per_second",),
            ("xid_last_code",),
        ),
        driver="535.129.03",
    ),
    "datadog_fixture_label_remap": Expected(
        {0: ("GPU-20c56d28-0da5-6d26-a36a-e7af1ce2586e", T4)},
        {("utilization_ratio",): 0.0},
        pods=("foo/bar/baz",),
        driver="460.106.00",
    ),
    "datadog_fixture_t4_many_labels": Expected(
        # Rows of two machines in one file: two cards of one index. Rows without labels are nobody's.
        {0: ("GPU-20c56d28-0da5-6d26-a36a-e7af1ce2586e", T4)},
        {("power_watts",): 8.969, ("memory_free_bytes",): 15109 * MIB, GPU_HEAT: 25.0},
        absent=(("sm_active_ratio",), MEMORY_HEAT),
        driver="460.106.00",
    ),
    "dra_gh200_k8s_docs": Expected(
        {0: ("GPU-a4f34abc-7715-3560-dcea-7238b9611a45", "NVIDIA GH200 96GB HBM3")},
        {("pcie_receive_bytes_per_second",): 23792.0},
        pods=("gpu-test3/pod1/ctr", "gpu-test3/pod2/ctr"),
    ),
    "gke_mps_vgpu_label_pr432": Expected(
        {0: ("GPU-3bc239e1-4cc8-97e4-e817-5a36dfd2885e", "NVIDIA A100-SXM4-80GB")},
        {("memory_used_bytes",): 15866 * MIB},
        pods=(
            "default/gpu-burn-deployment-1-85dc8ff699-clvh5/gpu-burn-container-1",
            "vllm-inference/vllm-medgemma-4b-it-d599b4c99-f95nk/vllm",
        ),
    ),
    "grace_cpu_issue243": Expected({}),
    "k8s_484_lowercase_hostname_t4": Expected(
        {0: ("GPU-8f1f4d06-07fd-27a7-52d5-e58aa060d256", T4)},
        {("power_watts",): 15.507, GPU_HEAT: 43.0, ("utilization_ratio",): 0.0, ("memory_used_bytes",): 0.0},
        absent=(("memory_total_bytes",),),
        pods=("default/gpu-test/gpu-test",),
    ),
    "k8s_busy_t4_no_help_lines": Expected(
        {0: ("GPU-6d5c0ac5-74d7-3130-46f1-e93ed57f469a", T4)},
        {
            ("utilization_ratio",): 0.91,
            ("graphics_engine_active_ratio",): 0.156205,
            ("energy_joules_total",): 15152422.938,
            ("memory_used_bytes",): 5120 * MIB,
            ("memory_total_bytes",): (5120 + 9791 + 447) * MIB,
            ("clock_hertz", "sm"): 660e6,
            ("pcie_transmit_bytes_per_second",): 4791810.0,
        },
        absent=(MEMORY_HEAT,),
        driver="590.48.01",
    ),
    "k8s_idle_l40s_helm": Expected(
        {0: ("GPU-5b4e07f6-3a86-4340-039d-25f2a83cdc43", "NVIDIA L40S")},
        {("power_watts",): 35.686, ("memory_reserved_bytes",): 608 * MIB, ("dram_active_ratio",): 0.000131},
        driver="595.58.03",
    ),
    "k8s_idle_l4_gpu_operator": Expected(
        {0: ("GPU-c2f76b33-7953-256e-8f33-1343419b1a1c", "NVIDIA L4")},
        {("energy_joules_total",): 4742.776, GPU_HEAT: 31.0, ("row_remap_failed",): 0.0},
        driver="580.105.08",
    ),
    "k8s_t4_aws_partial": Expected(
        {0: ("GPU-d7cbb0cd-d4bd-c2f7-dfaf-221df5e958ea", T4)},
        {("energy_joules_total",): 48287.135, ("power_watts",): 14.512},
        driver="580.105.08",
    ),
    "mig_a100_docs_gpu_plus_instances": Expected(
        {0: ("GPU-34319582-d595-d1c7-d1d2-179bcfa61660", "")},
        {
            ("power_watts",): 409.692,
            ("graphics_engine_active_ratio",): 0.99563,
            ("memory_used_bytes",): 4845 * MIB,
        },
        instances={
            13: (
                "1g.5gb",
                {
                    ("graphics_engine_active_ratio",): 0.995687,
                    ("tensor_active_ratio",): 0.930433,
                    ("dram_active_ratio",): 0.800339,
                },
            )
        },
    ),
    "mig_a30_pod_hostname_issue68": Expected(
        {0: ("GPU-603a8873-0edd-c157-ce48-2078e8b1a935", "NVIDIA A30")},
        instances={
            1: (
                "2g.12gb",
                {
                    ("graphics_engine_active_ratio",): 0.381124,
                    ("tensor_active_ratio",): 0.0,
                    ("dram_active_ratio",): 0.0,
                },
            )
        },
    ),
    "mig_a800_8gpu_mixed_full": Expected(
        {
            0: ("GPU-1f027ee8-6e1e-2b8c-0108-3d370e5f0418", A800),
            1: ("GPU-9e5b8fec-61bf-5124-a0a9-079af1b65cc6", A800),
            2: ("GPU-5022ce43-b44a-987b-71c3-dee05378a618", A800),
            3: ("GPU-f22db14d-1597-8eb1-78dc-d93765918c73", A800),
            4: ("GPU-a878a9f3-cf6d-b94c-38ba-892ed140c7ee", A800),
            5: ("GPU-a1dd6923-de62-e22b-c882-4d6f7e1ec5ce", A800),
            6: ("GPU-c07eb90d-74b0-d3b4-e6ce-f18687564243", A800),
            7: ("GPU-4e75c9ab-0ed7-8a57-75f5-23761b9f053f", A800),
        },
        # The card has no row of its own. DCGM repeats its power and heat on each instance, but not its memory.
        {("power_watts",): 78.174, ("energy_joules_total",): 257858.316, GPU_HEAT: 33.0},
        instances={3: ("2g.20gb", SLICE), 5: ("2g.20gb", SLICE), 6: ("2g.20gb", SLICE)},
        driver="535.129.03",
    ),
    "netdata_fixture_synthetic": Expected(
        {0: ("GPU-aaa", "")},
        {
            ("utilization_ratio",): 0.8,
            ("xid_last_code",): 31.0,
            ("throttle_seconds_total", "power"): 0.002,
            ("remapped_rows", "uncorrected"): 7.0,
        },
        # A blank, and a row of a single link.
        absent=(MEMORY_HEAT, ("nvlink_errors_total", "replay")),
        instances={2: ("1g.10gb", {})},
    ),
    "v100_hpc_no_k8s_issue250": Expected(
        {
            0: ("GPU-a6158b59-2c1e-1e63-0068-9178c4298abd", V100),
            1: ("GPU-8d5053b3-9280-7d1a-751b-4fd2fdd547c5", V100),
            2: ("GPU-a9079f15-493e-6c1c-c78c-73ec2b840cba", V100),
            3: ("GPU-bd94f0f5-8c2f-bc95-74ad-5f99fdc33d01", V100),
        },
        {("utilization_ratio",): 0.0, ("pcie_replays_total",): 0.0},
    ),
    "v1_textfile_gpu_monitoring_tools": Expected(
        {0: ("GPU-8f640a3c-7e9a-608d-02a3-f4372d72b323", "")},
        {
            ("power_watts",): 31.737,
            ("energy_joules_total",): 7824.041,
            ("clock_hertz", "sm"): 135e6,
            GPU_HEAT: 34.0,
        },
        absent=(("xid_last_code",),),
    ),
    "vgpu_grid_a100_10c": Expected(
        {0: ("GPU-44d2411e-1604-478f-aa96-5a3c00000000", "GRID A100-10C")},
        {("memory_total_bytes",): (9323 + 916) * MIB},
        absent=(("power_watts",), MEMORY_HEAT),
        driver="580.126.09",
    ),
    "xid_count_window_pr239": Expected(
        {0: ("GPU-b9f9e81b-bee7-34bc-af17-132ef6592740", "NVIDIA T400 4GB")}, driver="545.29.02"
    ),
}


def test_every_recorded_page_is_in_the_table() -> None:
    assert {path.stem for path in RECORDED.iterdir()} == set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_a_recorded_page_is_read_as_a_person_reads_it(name: str) -> None:
    expected, found = PAGES[name], read(recorded(name))
    by_index = {card.device.gpu.index: card for card in reversed(found.cards)}
    gpus = {index: (card.device.gpu.uuid, card.device.gpu.model) for index, card in by_index.items()}
    assert gpus == expected.cards
    assert (found.driver_version, found.errors) == (expected.driver, {})
    assert tuple(pod for card in found.cards for pod in names(card.allocations)) == expected.pods
    assert not [key for card in found.cards for key in expected.absent if key in values(card)]
    if not gpus:
        return
    card = by_index[0]
    assert expected.values.items() <= values(card).items()
    instances = {instance.mig.gpu_instance_id: instance for instance in card.device.instances}
    assert {
        number: (instance.mig.profile, values(instance)) for number, instance in instances.items()
    } == expected.instances
    assert card.device.gpu.mig_enabled == bool(instances)
    assert card.device.ability == Ability()
