"""The pages of dcgm-exporter up to 4.8 and since 4.9."""

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from podgpu.catalog import CATALOG
from podgpu.config import Config
from podgpu.config.precedence import load
from podgpu.model import Claim, ContainerRef, Device, Gpu, Reading, Snapshot, Tenant
from podgpu.serve.pages import register_pages
from podgpu.views.dialects import dcgm, dcgm_1_x, dcgm_4_9
from podgpu.views.dialects._dcgm.counters import DcgmPageOptions, unavailable
from podgpu.views.exposition import Format, render
from tests.catalog.dcgm import DEFAULT_COUNTERS, LABELS, LEFT_OUT, OPTIONAL_COUNTERS, RENAMED_IN_4_9
from tests.conftest import Golden
from tests.tree import card
from tests.views.dialects.dcgm_node import EXCLUSIVE, IDLE, NODE, uuid
from tests.views.dialects.rig import values

PROMTOOL = shutil.which("promtool")
DEFAULT = load({}, {}).of(DcgmPageOptions)
PER_CONTAINER = load({"dcgm_per_container": ["on"]}, {}).of(DcgmPageOptions)
PAGES = {
    "dcgm/default": (dcgm, DEFAULT),
    "dcgm/per-container": (dcgm, PER_CONTAINER),
    "dcgm-4.9/default": (dcgm_4_9, DEFAULT),
    "dcgm-4.9/per-container": (dcgm_4_9, PER_CONTAINER),
    "dcgm-1.x/default": (dcgm_1_x, DEFAULT),
}

Row = tuple[dict[str, str], float]


def page(dialect: ModuleType, config: DcgmPageOptions = DEFAULT, snapshot: Snapshot = NODE) -> bytes:
    return render(dialect.families(snapshot, config), Format.TEXT)


def rows(
    name: str,
    gpu: int,
    dialect: ModuleType = dcgm,
    config: DcgmPageOptions = DEFAULT,
    snapshot: Snapshot = NODE,
) -> list[Row]:
    """The labels and the value of each of a card's rows."""
    parsed = text_string_to_metric_families(page(dialect, config, snapshot).decode())
    # The parser gives every counter the suffix that counters should have.
    samples = [sample for family in parsed for sample in family.samples if sample.name in (name, f"{name}_total")]
    return [(sample.labels, sample.value) for sample in samples if sample.labels["gpu"] == str(gpu)]


def listed(path: Path, text: str) -> DcgmPageOptions:
    path.write_text(text)
    return load({"dcgm_collectors": [str(path)]}, {}).of(DcgmPageOptions)


@pytest.mark.parametrize("name", PAGES)
def test_the_page(name: str, golden: Golden) -> None:
    golden(f"dialects/{name}.prom", page(*PAGES[name]))


# Complaints about names that are not ours to choose.
INHERITED = (
    "label names should be written in 'snake_case' not 'camelCase'",
    'counter metrics should have "_total" suffix',
    "metric name should not include type 'counter'",
)


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
@pytest.mark.parametrize("name", PAGES)
def test_promtool_complains_about_inherited_names_only(name: str) -> None:
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=page(*PAGES[name]), capture_output=True, check=False)
    said = (done.stdout + done.stderr).decode().splitlines()
    assert [line for line in said if not line.endswith(INHERITED)] == []


def test_the_default_counters_are_those_of_dcgm_exporter() -> None:
    given_by_default = set(DEFAULT_COUNTERS) - set(LEFT_OUT)
    found = {family.name: (family.kind.value, family.help) for family in dcgm.families(NODE, DEFAULT)}
    # No card of the node reports how fast it receives.
    assert given_by_default - set(found) == {"DCGM_FI_PROF_PCIE_RX_BYTES"}
    assert found == {name: DEFAULT_COUNTERS[name] for name in found}


def test_4_9_has_the_same_counters_by_new_names_and_the_size_of_the_memory() -> None:
    old = {family.name for family in dcgm.families(NODE, DEFAULT)}
    new = {family.name for family in dcgm_4_9.families(NODE, DEFAULT)}
    assert new == {RENAMED_IN_4_9.get(name, name) for name in old} | {"DCGM_FI_DEV_FB_CAPACITY_BYTES"}


def test_labels_are_in_the_order_of_dcgm_exporter() -> None:
    text = page(dcgm).decode()
    device = f'gpu="0",UUID="{uuid(0)}",pci_bus_id="00000000:18:00.0",device="nvidia0",modelName="NVIDIA H200"'
    rest = 'Hostname="gpu-node-1",DCGM_FI_DRIVER_VERSION="580.159.04"'
    assert f'DCGM_FI_DEV_GPU_UTIL{{{device},{rest},container="main",namespace="team-a",pod="train-0"}} 97\n' in text


def test_4_9_has_a_lower_case_hostname_and_a_new_name_for_the_driver() -> None:
    ((labels, value),) = rows("DCGM_FI_DEV_GPU_UTIL_RATIO", 0, dcgm_4_9)
    assert value == 0.97
    assert labels["hostname"] == "gpu-node-1"
    assert labels["DCGM_FI_SYSTEM_DRIVER_VERSION"] == "580.159.04"
    assert not {"Hostname", "DCGM_FI_DRIVER_VERSION"} & labels.keys()


def test_4_8_3_has_a_lower_case_hostname_short_fractions_and_a_gauge_for_nvlink() -> None:
    small = load({"dcgm_hostname_label": ["hostname"]}, {}).of(DcgmPageOptions)
    before = page(dcgm).replace(b"Hostname=", b"hostname=")
    before = before.replace(b"NVLINK_BANDWIDTH_TOTAL counter", b"NVLINK_BANDWIDTH_TOTAL gauge")
    whole = re.sub(rb"(\} [0-9]+)\.0+\n", rb"\1\n", before)
    assert page(dcgm, small) == re.sub(rb"(\} [0-9]+\.[0-9]*?)0+\n", rb"\1\n", whole)


def test_numbers_are_written_as_dcgm_exporter_writes_them() -> None:
    wanted = {
        dcgm: {"DCGM_FI_DEV_GPU_UTIL": "97", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": "0.300000"},
        dcgm_4_9: {"DCGM_FI_DEV_GPU_UTIL_RATIO": "0.97", "DCGM_FI_PROF_TENSOR_UTIL_RATIO": "0.3"},
        dcgm_1_x: {"dcgm_gpu_utilization": "97", "dcgm_fi_prof_pipe_tensor_active": "0.300"},
    }
    for dialect, numbers in wanted.items():
        text = page(dialect).decode()
        found = {name: re.search(rf"^{name}\{{gpu=\"0\".* (\S+)$", text, re.MULTILINE) for name in numbers}
        assert {name: match and match[1] for name, match in found.items()} == numbers


def test_a_gpu_without_a_pod_has_no_pod_labels() -> None:
    ((labels, _),) = rows("DCGM_FI_DEV_GPU_UTIL", 1)
    assert not {"pod", "namespace", "container"} & labels.keys()


def test_values_are_whole_numbers_in_the_units_of_dcgm() -> None:
    told = {name: rows(name, 0)[0][1] for name in ("DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_DEC_UTIL")}
    assert told == {"DCGM_FI_DEV_SM_CLOCK": 1980, "DCGM_FI_DEV_DEC_UTIL": 57}
    assert rows("DCGM_FI_DEV_FB_USED", 0)[0][1] == 30719  # MiB are cut, as an integer division does
    assert rows("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 0)[0][1] == 123_456_789_012
    assert rows("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", 0)[0][1] == 4000  # both directions
    assert rows("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0)[0][1] == 0.3  # six decimals
    assert rows("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 0, dcgm_4_9)[0][1] == 123_456_789.012


def test_the_last_xid_has_its_meaning_in_words() -> None:
    ((labels, value),) = rows("DCGM_FI_DEV_XID_ERRORS", 0)
    assert (value, labels["err_code"], labels["err_msg"]) == (31, "31", "GPU memory page fault")
    strange = replace(NODE, cards=(replace(EXCLUSIVE, readings=(Reading("xid_last_code", 999),)),))
    assert rows("DCGM_FI_DEV_XID_ERRORS", 0, snapshot=strange)[0][0]["err_msg"] == "Unknown Error"


@pytest.mark.parametrize(("dialect", "name"), [(dcgm, "DCGM_FI_DEV_XID_ERRORS"), (dcgm_4_9, "DCGM_FI_DEV_XID_ERROR")])
def test_a_card_without_an_xid_shows_0_if_one_would_have_been_heard(dialect: ModuleType, name: str) -> None:
    ((labels, value),) = rows(name, 1, dialect)
    assert (value, labels["err_code"], labels["err_msg"]) == (0, "0", "No Error")
    assert [value for _, value in rows(name, 3, dialect)] == [0] * 3  # the card's, for each GPU instance
    assert rows(name, 5, dialect) == []  # it is down


def test_a_card_whose_xids_are_not_heard_shows_none() -> None:
    deaf = replace(IDLE, ability=replace(IDLE.ability, hears_xids=False))
    node = replace(NODE, cards=(EXCLUSIVE, deaf))
    assert rows("DCGM_FI_DEV_XID_ERRORS", 1, snapshot=node) == []
    assert b'dcgm_xid_errors{gpu="1"' not in page(dcgm_1_x, DEFAULT, node)


def test_a_gpu_instance_has_rows_instead_of_its_card() -> None:
    found = rows("DCGM_FI_DEV_FB_USED", 3)
    assert [(labels["GPU_I_PROFILE"], labels["GPU_I_ID"], value) for labels, value in found] == [
        ("2g.35gb", "3", 10240),
        ("2g.35gb", "5", 8192),
        ("1g.18gb", "9", 256),
    ]
    assert {labels["UUID"] for labels, _ in found} == {uuid(3)}


def test_a_gpu_instance_repeats_what_only_the_card_reports() -> None:
    assert [value for _, value in rows("DCGM_FI_DEV_POWER_USAGE", 3)] == [390.5] * 3
    assert [value for _, value in rows("DCGM_FI_DEV_SM_CLOCK", 3)] == [1980] * 3


@pytest.mark.parametrize(
    "name",
    ["GPU_UTIL", "MEM_COPY_UTIL", "ENC_UTIL", "DEC_UTIL", "CORRECTABLE_REMAPPED_ROWS", "ROW_REMAP_FAILURE"],
)
def test_a_gpu_instance_does_not_repeat_what_dcgm_reports_for_cards_only(name: str) -> None:
    assert rows(f"DCGM_FI_DEV_{name}", 3) == []
    assert len(rows(f"DCGM_FI_DEV_{name}", 1)) == 1


def test_a_gpu_instance_never_shows_the_memory_of_its_card() -> None:
    assert rows("DCGM_FI_DEV_FB_RESERVED", 3) == []  # the card tells it, the instances do not


def test_a_card_in_mig_mode_without_instances_has_its_own_row() -> None:
    ((labels, value),) = rows("DCGM_FI_DEV_POWER_USAGE", 6)
    assert value == 70
    assert "GPU_I_ID" not in labels


def test_a_card_that_is_down_is_not_on_the_page() -> None:
    assert uuid(5).encode() not in page(dcgm)


def test_a_shared_card_names_no_pod_by_default() -> None:
    for name in ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_GPU_TEMP"):
        ((labels, _),) = rows(name, 2)
        assert "pod" not in labels


def test_a_resource_claim_is_named_with_its_device() -> None:
    ((labels, _),) = rows("DCGM_FI_DEV_GPU_TEMP", 4)
    assert {name: value for name, value in labels.items() if name.startswith("dra_")} == {
        "dra_claim_name": "dynamic-gpu-x7k2p",
        "dra_claim_namespace": "team-c",
        "dra_device_name": "gpu-4",
        "dra_driver_name": "gpu.nvidia.com",
        "dra_pool_name": "gpu-node-1",
    }


def test_a_claimed_instance_is_named_and_the_status_says_which_of_two_claims_it_is() -> None:
    labels = rows("DCGM_FI_DEV_FB_USED", 3)[2][0]
    assert labels["dra_claim_name"] == "part-two-bbbbb"
    assert (labels["dra_pool_name"], labels["dra_device_name"]) == ("pool/a", "gpu-3-mig-1g18gb-19-0")
    assert labels["dra_mig_profile"] == "1g.18gb"
    assert labels["dra_mig_device_uuid"].startswith("MIG-")


def test_a_claim_in_doubt_is_not_named() -> None:
    silent = replace(NODE, pods=tuple(replace(pod, containers=()) for pod in NODE.pods))
    ((labels, _),) = rows("DCGM_FI_DEV_GPU_TEMP", 4, snapshot=silent)
    assert "dra_claim_name" not in labels
    assert labels["dra_device_name"] == "gpu-4"


def test_a_file_of_counters_chooses_families_types_help_and_labels(tmp_path: Path) -> None:
    config = listed(
        tmp_path / "counters.csv",
        "DCGM_FI_DEV_POWER_VIOLATION, counter, Held down by power (in ns).\n"
        "DCGM_FI_DEV_GPU_TEMP, counter, Heat\n"
        "DCGM_EXP_XID_ERRORS_TOTAL, counter, XIDs\n"
        "DCGM_FI_NVML_VERSION, label, NVML\n"
        "DCGM_FI_DEV_VBIOS_VERSION, label, VBIOS\n",
    )
    families = dcgm.families(replace(NODE, cards=(EXCLUSIVE,)), config)
    assert [(family.name, family.kind.value, family.help) for family in families] == [
        ("DCGM_FI_DEV_POWER_VIOLATION", "counter", "Held down by power (in ns)."),
        ("DCGM_FI_DEV_GPU_TEMP", "counter", "Heat"),
        ("DCGM_EXP_XID_ERRORS_TOTAL", "counter", "XIDs"),
    ]
    heat, xids = (values(families, family.name) for family in families[1:])
    assert 'Hostname="gpu-node-1",DCGM_FI_DEV_VBIOS_VERSION="96.00",DCGM_FI_NVML_VERSION="13.' in next(iter(heat))
    assert [text.partition("container=")[2] for text in xids] == [
        '"main",namespace="team-a",pod="train-0",xid="31"}',
        '"main",namespace="team-a",pod="train-0",xid="13"}',
    ]


def test_a_field_is_printed_as_the_file_names_it_on_every_page(tmp_path: Path) -> None:
    config = listed(
        tmp_path / "counters.csv",
        "DCGM_FI_DEV_GPU_UTIL, gauge, Old words\n"
        "DCGM_FI_DEV_FB_USED_BYTES, gauge, New words\n"
        "dcgm_sm_clock, counter, Oldest words\n"
        "DCGM_FI_SYSTEM_DRIVER_VERSION, label, Driver\n",
    )
    for dialect in (dcgm, dcgm_4_9):
        found = {family.name: (family.kind.value, family.help) for family in dialect.families(NODE, config)}
        assert found == {
            "DCGM_FI_DEV_GPU_UTIL": ("gauge", "Old words"),
            "DCGM_FI_DEV_FB_USED_BYTES": ("gauge", "New words"),
            "dcgm_sm_clock": ("counter", "Oldest words"),
        }
        told = {name: rows(name, 0, dialect, config)[0][1] for name in found}
        assert told == {
            "DCGM_FI_DEV_GPU_UTIL": 97,
            "DCGM_FI_DEV_FB_USED_BYTES": 30 * 2**30 - 700_000,
            "dcgm_sm_clock": 1980,
        }
        assert b'DCGM_FI_SYSTEM_DRIVER_VERSION="580' in page(dialect, config)


def test_fields_that_cannot_be_provided_are_listed(tmp_path: Path) -> None:
    config = listed(
        tmp_path / "counters.csv",
        "DCGM_FI_DEV_GPU_TEMP, gauge, known\n"
        "DCGM_FI_PROCESS_NAME, label, unknown\n"
        "DCGM_FI_DEV_GPU_UTIL, label, a number is no label\n"
        "DCGM_FI_DRIVER_VERSION, gauge, nor is a text a number\n"
        "DCGM_EXP_P2P_STATUS, gauge, unknown\n",
    )
    assert unavailable(config.collectors) == (
        "DCGM_FI_PROCESS_NAME",
        "DCGM_FI_DEV_GPU_UTIL",
        "DCGM_FI_DRIVER_VERSION",
        "DCGM_EXP_P2P_STATUS",
    )
    assert unavailable(None) == ()


def test_only_known_counters_of_dcgm_exporter_are_missing(tmp_path: Path) -> None:
    counters = DEFAULT_COUNTERS | OPTIONAL_COUNTERS
    lines = [f'{name}, {kind}, "{words}"' for name, (kind, words) in counters.items()]
    config = listed(tmp_path / "counters.csv", "\n".join([*lines, *(f"{name}, label, fact" for name in LABELS)]))
    missing = set(unavailable(config.collectors))
    assert missing & counters.keys() == LEFT_OUT.keys()
    assert not LABELS & missing


def test_a_field_means_the_same_rows_in_every_generation() -> None:
    pairs = {
        (alias.name, row.name)
        for row in CATALOG
        for alias in (row.dcgm, row.dcgm49, row.dcgm1x)
        if alias and not alias.name.lower().startswith("dcgm_fi_dev_nvlink") and "nvlink_bandwidth" not in alias.name
    }
    assert [name for name, times in Counter(name for name, _ in pairs).items() if times > 1] == []


def test_both_generations_are_served_at_the_same_time() -> None:
    pages = register_pages(Config().of).pages
    assert {"/metrics/dcgm", "/metrics/dcgm-4.9", "/metrics/dcgm-1.x", "/gpu/metrics"} <= pages.keys()
    assert pages["/metrics/dcgm"](NODE, {}) == dcgm.families(NODE, DEFAULT)
    assert pages["/metrics/dcgm-4.9"](NODE, {}) == dcgm_4_9.families(NODE, DEFAULT)


words = st.text(max_size=300)


@given(model=words, node=words, pod=words, device_id=words, system=st.sampled_from(["dra", "mig", ""]))
def test_no_name_breaks_a_page(model: str, node: str, pod: str, device_id: str, system: str) -> None:
    gpu = Gpu(uuid=model, index=0, model=model, pci_bus_id=model)
    claim = Claim(
        gpu=model,
        container=ContainerRef(pod, pod, pod, pod),
        system=system,
        resource=pod,
        device_id=device_id,
    )
    device = Device(gpu=gpu, readings=(Reading("power_watts", 5.0),))
    tenant = Tenant(container=claim.container, claims=(claim,))
    snapshot = replace(NODE, node=node, cards=(card(device, tenants=[tenant]),), driver_version=node)
    for dialect in (dcgm, dcgm_4_9, dcgm_1_x):
        text = page(dialect, DEFAULT, snapshot).decode()
        (family,) = text_string_to_metric_families(text)
        assert [sample.value for sample in family.samples] == [5.0]
