"""The rules by which a page becomes cards, pods and values, where pages are ambiguous."""

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.sources.dcgm.reading import MEANINGS, MOST_CARDS, PageCard, PageContents, read
from podgpu.views.dialects import dcgm, dcgm_1_x, dcgm_4_9
from tests.sources.dcgm.found import MIB, Key, names, values
from tests.views.dialects.dcgm_node import PAIR
from tests.views.dialects.test_dcgm import page as page_of


def sample(name: str, labels: dict[str, str], value: str) -> str:
    pairs = [f'{key}="{text}"' for key, text in labels.items()]
    return f"{name}{{{','.join(pairs)}}} {value}"


def labelled(row: str) -> tuple[str, dict[str, str], str]:
    """`name value label=value,...`; the card is GPU-1 unless it says otherwise."""
    name, value, *rest = row.split()
    more = dict(label.split("=") for word in rest for label in word.split(","))
    return name, {"gpu": "0", "UUID": "GPU-1"} | more, value


def page(*rows: str) -> PageContents:
    return read("\n".join(sample(*labelled(row)) for row in rows).encode())


def by_prometheus(*rows: str) -> PageContents:
    """The same row after it passed through Prometheus, which sorts labels and adds its own."""
    lines = []
    for row in rows:
        name, labels, value = labelled(row)
        labels |= {"job": "dcgm", "instance": "10.0.0.1:9400"}
        lines.append(sample(name, dict(sorted(labels.items())), value))
    return read("\n".join(lines).encode())


def card(*rows: str) -> PageCard:
    [only] = page(*rows).cards
    return only


UTIL = "DCGM_FI_DEV_GPU_UTIL"
OWN = "namespace=ns,pod=train,container=main"
OTHER = "namespace=ns,pod=other,container=main"
MOVED = "exported_namespace=ns,exported_pod=train,exported_container=main"
EXPORTER = "namespace=monitoring,pod=dcgm-exporter-x,container=exporter"


@pytest.mark.parametrize(
    ("labels", "pods"),
    [
        (OWN, ("ns/train/main",)),
        ("pod_namespace=ns,pod_name=train,container_name=main", ("ns/train/main",)),
        ("namespace=,pod=,container=", ()),
        ("namespace=ns,pod=train", ()),
        ("namespace=ns,pod=../train,container=main", ()),
        ("namespace=NS,pod=train,container=main", ()),
        (f"namespace={'n' * 64},pod=train,container=main", ()),
    ],
)
def test_a_pod_is_named_in_many_spellings(labels: str, pods: tuple[str, ...]) -> None:
    assert names(card(f"{UTIL} 50 {labels}").allocations) == pods


@pytest.mark.parametrize(
    ("labels", "pods"),
    [
        (f"{MOVED},{EXPORTER}", ("ns/train/main",)),
        (EXPORTER, ()),
        # Prometheus had nothing to rename, so this label is the pod's own.
        (MOVED, ()),
        (f"{MOVED},{EXPORTER},exported_exported_pod=train", ()),
        (f"{EXPORTER},pod_namespace=ns,pod_name=train,container_name=main", ()),
    ],
)
def test_by_way_of_prometheus_the_bare_labels_are_the_exporters(labels: str, pods: tuple[str, ...]) -> None:
    [found] = by_prometheus(f"{UTIL} 50 {labels}").cards
    assert names(found.allocations) == pods


def test_an_idle_card_on_a_page_by_way_of_prometheus_is_not_the_exporters() -> None:
    busy, idle = by_prometheus(
        f"{UTIL} 50 {MOVED},{EXPORTER}",
        f"{UTIL} 0 gpu=1,UUID=GPU-2,{EXPORTER}",
    ).cards
    assert names(busy.allocations) == ("ns/train/main",)
    assert names(idle.allocations) == ()


def test_instances_are_read_from_a_page_of_prometheus_too() -> None:
    [found] = by_prometheus(f"{UTIL} 50 GPU_I_ID=3,GPU_I_PROFILE=2g.20gb,{MOVED},{EXPORTER}").cards
    assert [allocation.device_id for allocation in found.allocations] == ["MIG-GPU-1/3/0"]


def test_parts_of_a_card_are_called_as_the_device_plugin_calls_them() -> None:
    found = card(f"{UTIL} 50 {OWN},vgpu=0", f"{UTIL} 50 {OTHER},vgpu=3")
    assert [allocation.device_id for allocation in found.allocations] == ["GPU-1::0", "GPU-1::3"]


def mig(number: int) -> str:
    return f"MIG-00000000-0000-5000-8000-{number:012d}"


def claim(number: int) -> str:
    """The labels of a resource claim for a MIG device."""
    return (
        f"dra_claim_name=c{number},dra_claim_namespace=ns,dra_device_name=gpu-0-mig-{number},"
        f"dra_driver_name=gpu.nvidia.com,dra_mig_device_uuid={mig(number)},dra_mig_profile=1g.10gb,dra_pool_name=n"
    )


def test_a_pod_on_an_instance_holds_the_instance() -> None:
    found = card(
        f"DCGM_FI_PROF_SM_ACTIVE 0.5 GPU_I_PROFILE=2g.20gb,GPU_I_ID=3,Hostname=n,{OWN}",
        f"DCGM_FI_DEV_POWER_USAGE 300 Hostname=n,{OWN}",
    )
    [instance] = found.device.instances
    assert [allocation.device_id for allocation in found.allocations] == [instance.mig.uuid] == ["MIG-GPU-1/3/0"]


def test_parts_of_instances_are_each_instance_s_own() -> None:
    first, second = (f"GPU_I_PROFILE=2g.20gb,GPU_I_ID={number},Hostname=n" for number in (3, 5))
    found = card(f"{UTIL} 50 {first},{OWN},vgpu=0", f"{UTIL} 50 {first},{OTHER},vgpu=1", f"{UTIL} 5 {second},{OWN}")
    assert [allocation.device_id for allocation in found.allocations] == [
        "MIG-GPU-1/3/0::0",
        "MIG-GPU-1/3/0::1",
        "MIG-GPU-1/5/0",
    ]


def test_a_claim_on_the_row_of_a_card_names_the_instance() -> None:
    """dcgm-exporter up to 4.8.2 puts the claim of a MIG device on the row of its card."""
    found = card(f"{UTIL} 50 Hostname=n,{claim(1)},{OWN}", f"{UTIL} 50 Hostname=n,{claim(2)},{OTHER}")
    assert [allocation.device_id for allocation in found.allocations] == [mig(1), mig(2)]
    assert [(instance.mig.uuid, instance.mig.profile) for instance in found.device.instances] == [
        (mig(1), "1g.10gb"),
        (mig(2), "1g.10gb"),
    ]
    assert found.device.gpu.mig_enabled


def test_a_claim_means_the_only_instance_of_its_profile() -> None:
    instances = [
        f"DCGM_FI_PROF_SM_ACTIVE 0.5 GPU_I_PROFILE={profile},GPU_I_ID={number},Hostname=n"
        for number, profile in enumerate(("1g.10gb", "2g.20gb"), 3)
    ]
    found = card(*instances, f"{UTIL} 50 Hostname=n,{claim(1)},{OWN}")
    assert [allocation.device_id for allocation in found.allocations] == ["MIG-GPU-1/3/0"]
    assert len(found.device.instances) == 2
    doubtful = card(*instances, f"{UTIL} 50 Hostname=n,{claim(1)},{OWN}", f"{UTIL} 50 Hostname=n,{claim(2)},{OTHER}")
    assert doubtful.allocations == ()


def test_the_row_of_a_card_does_not_say_who_holds_an_instance() -> None:
    divided = "dra_mig_profile=1g.10gb"
    assert card(f"{UTIL} 50 {OWN},{divided}", f"{UTIL} 50 {OTHER},{divided}").allocations == ()


def test_the_card_s_own_row_is_believed_before_those_of_its_pods() -> None:
    shared = (f"{UTIL} 30 {OWN},vgpu=0", f"{UTIL} 20 {OTHER},vgpu=1")
    assert values(card(f"{UTIL} 50", *shared))["utilization_ratio",] == 0.5


def test_pods_that_contradict_each_other_are_not_believed() -> None:
    found = page(f"{UTIL} 30 {OWN},vgpu=0", f"{UTIL} 20 {OTHER},vgpu=1")
    assert values(found.cards[0]) == {}
    assert found.errors == {"contradiction": 1}


def test_two_generations_of_names_are_one_value() -> None:
    found = page(f"{UTIL} 50", "DCGM_FI_DEV_GPU_UTIL_RATIO 0.51")
    assert (values(found.cards[0]), found.errors) == ({("utilization_ratio",): 0.5}, {})


@pytest.mark.parametrize(
    ("row", "key", "value"),
    [
        ("DCGM_FI_DEV_GPU_UTIL_RATIO 0.5", ("utilization_ratio",), 0.5),
        ("dcgm_gpu_utilization 50", ("utilization_ratio",), 0.5),
        ("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL 1.5", ("energy_joules_total",), 1.5),
        ("dcgm_total_energy_consumption 1500", ("energy_joules_total",), 1.5),
        ("DCGM_FI_DEV_FB_USED_BYTES 1048576", ("memory_used_bytes",), MIB),
        ("dcgm_fb_used 1", ("memory_used_bytes",), MIB),
        ("DCGM_FI_DEV_SM_CLOCK_HERTZ 1410000000", ("clock_hertz", "sm"), 1.41e9),
        ("DCGM_FI_PROF_SM_UTIL_RATIO 0.25", ("sm_active_ratio",), 0.25),
        ("dcgm_fi_prof_sm_active 0.25", ("sm_active_ratio",), 0.25),
        ("DCGM_FI_PROF_SM_ACTIVE 1.003", ("sm_active_ratio",), 1.003),
        ("DCGM_FI_PROF_NVLINK_TX_BYTES 7", ("nvlink_transmit_bytes_per_second",), 7.0),
        ("dcgm_power_violation 2000000", ("throttle_seconds_total", "power"), 0.002),
        ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS 4", ("clock_event", "software_power_cap"), 1.0),
        ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS 4", ("clock_event", "idle"), 0.0),
        ("DCGM_EXP_XID_ERRORS_TOTAL 3 xid=31", ("xid_errors_total", "31"), 3.0),
    ],
)
def test_units_of_every_generation_become_base_units(row: str, key: Key, value: float) -> None:
    assert values(card(row))[key] == value


@pytest.mark.parametrize("row", ["DCGM_FI_DEV_FB_USED 17592186044415", f"{UTIL} 101", f"{UTIL} -200"])
def test_what_no_card_can_mean_is_dropped_and_counted(row: str) -> None:
    found = page(row)
    assert values(found.cards[0]) == {}
    assert found.errors == {"implausible_value": 1}


def test_use_on_the_row_of_an_instance_is_not_the_card_s() -> None:
    assert values(card(f"{UTIL} 60 GPU_I_ID=2,GPU_I_PROFILE=1g.10gb")) == {}


@pytest.mark.parametrize("labels", ["UUID=", "UUID=MIG-1", f"UUID=GPU-{'1' * 65}", "GPU_I_ID=x,GPU_I_PROFILE=1g.10gb"])
def test_rows_of_no_card_are_left_out(labels: str) -> None:
    assert page(f"{UTIL} 50 {labels}").cards == ()


@pytest.mark.parametrize(
    "row",
    [
        "DCGM_FI_DEV_NVLINK_COUNT_TX_BYTES 5",
        "DCGM_FI_DEV_SOMETHING_NEW 1",
        "DCGM_FI_DEV_VGPU_PER_PROCESS_UTILIZATION nonsense",
        "DCGM_FI_DEV_GPU_TEMP 2147483632",
        f"{UTIL} 50 nvlink=3",
        "DCGM_FI_DEV_NVLINK_COUNT_TX_BYTES 5 UUID=,gpu_uuid=GPU-1,nvlink=3",
    ],
)
def test_every_row_that_names_a_gpu_makes_a_card(row: str) -> None:
    found = page(row)
    assert [card.device.gpu.uuid for card in found.cards] == ["GPU-1"]
    assert values(found.cards[0]) == {}
    assert found.errors == {}


def test_a_page_names_its_host() -> None:
    assert page(f"{UTIL} 50 Hostname=gpu-node-7").node == "gpu-node-7"
    assert page(f"{UTIL} 50 hostname=gpu-node-8").node == "gpu-node-8"
    assert page(f"{UTIL} 50").node == ""


def test_a_page_from_prometheus_may_have_the_old_spelling_of_pods() -> None:
    found = by_prometheus(f"{UTIL} 50 container_name=c,pod_name=p,pod_namespace=ns")
    assert names(found.cards[0].allocations) == ("ns/p/c",)
    # Beside other names they may be labels that a pod gave itself.
    beside = by_prometheus(f"{UTIL} 50 container_name=c,pod_name=p,pod_namespace=ns,{EXPORTER}")
    assert beside.cards[0].allocations == ()


def test_a_card_without_a_number_has_that_of_its_place() -> None:
    found = page(f"{UTIL} 50 gpu=x", f"{UTIL} 50 gpu=,UUID=GPU-2")
    assert [card.device.gpu.index for card in found.cards] == [0, 1]


def test_a_page_has_only_so_many_cards() -> None:
    found = page(*(f"{UTIL} 50 UUID=GPU-{number}" for number in range(MOST_CARDS + 3)))
    assert (len(found.cards), found.errors) == (MOST_CARDS, {"too_many_cards": 3})


MINOR = "DCGM_FI_DEV_MINOR_NUMBER"


@pytest.mark.parametrize(
    ("first", "second", "minors"),
    [
        (f"{MINOR}=1", f"{MINOR}=0", [1, 0]),
        # The number of `device` is DCGM's own.
        ("device=nvidia0", "device=nvidia1", [None, None]),
        # The label is not the exporter's if a row lacks it, or if two cards have the same number.
        (f"{MINOR}=1,{OWN}", "device=nvidia1", [None, None]),
        (f"{MINOR}=0,{OWN}", f"{MINOR}=0", [None, None]),
        (f"{MINOR}=x", f"{MINOR}=0", [None, None]),
    ],
)
def test_the_number_of_the_device_file_is_what_the_page_says_it_is(
    first: str, second: str, minors: list[int | None]
) -> None:
    found = page(f"{UTIL} 50 {first}", f"{UTIL} 50 gpu=1,UUID=GPU-2,{second}")
    assert [card.device.gpu.minor for card in found.cards] == minors


LABELS = (
    "UUID",
    "uuid",
    "gpu",
    "device",
    "GPU_I_ID",
    "GPU_I_PROFILE",
    "vgpu",
    "xid",
    "modelName",
    "pod",
    "namespace",
)
ROWS = st.builds(
    sample,
    st.sampled_from(sorted(MEANINGS)),
    st.dictionaries(
        st.sampled_from([*LABELS, "container", "exported_pod", "job", "instance"]),
        st.sampled_from(["GPU-1", "GPU-2", "0", "7", "nvidia1", "x", "", "\u202e\n", "9" * 30]),
    ),
    st.floats().map(str) | st.integers().map(str),
)


@given(st.lists(ROWS, max_size=8))
def test_no_page_makes_it_raise(rows: list[str]) -> None:
    for card in read("\n".join(rows).encode(errors="replace")).cards:
        assert all(abs(reading.value) < 2**63 for reading in card.device.readings)


@pytest.mark.parametrize("dialect", [dcgm, dcgm_4_9, dcgm_1_x])
def test_a_pod_without_a_container_on_podgpu_s_own_page_holds_the_card(dialect: ModuleType) -> None:
    (card, *_) = read(page_of(dialect, snapshot=PAIR)).cards
    assert names(card.allocations) == ("team-a/train-0/",)


def test_prometheus_drops_the_empty_container() -> None:
    row = 'DCGM_FI_DEV_POWER_USAGE{%s,container="exporter",pod="dcgm-1",namespace="gpu"%s} 250\n'
    card = 'UUID="GPU-1",gpu="0",instance="a",job="dcgm"'
    held = row % (card, ',exported_namespace="team-a",exported_pod="train-0"')
    assert names(read(held.encode()).cards[0].allocations) == ("team-a/train-0/",)
    assert read((row % (card, "")).encode()).cards[0].allocations == ()
