"""The page of nvidia-gpu-mem-monitor."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podgpu.config.precedence import load
from podgpu.model import ContainerRef, Device, Gpu, Holder, Owner, Pod, Process, Snapshot
from podgpu.views.dialects.gpu_mem_monitor import DIALECT, NAME, GpuMemMonitorOptions
from tests.conftest import Golden
from tests.views.dialects.rig import NODES, check_series, complaints, joined, played, script, text, values
from tests.views.quirks import SNAPSHOT

README = load({}, {}).of(GpuMemMonitorOptions)
LATER = load({"dialect_gpu_mem_monitor_labels": ["later"]}, {"HOST_IP": "10.244.19.248"}).of(GpuMemMonitorOptions)
families = DIALECT.pages["/metrics/gpu-mem-monitor"]

MIB = 2**20
CARD = Gpu(uuid="GPU-1", index=3, model="TITAN V")
# Card, PID and MiB, as the README's nvidia-smi lists them.
LISTED = ((0, 159584, 2635), (2, 41728, 5133), (2, 152095, 3565), (6, 3148, 3887), (6, 11020, 3887))


def node(*devices: Device, holders: tuple[Holder, ...] = ()) -> Snapshot:
    return replace(SNAPSHOT, cards=tuple(joined(device, holders=holders) for device in devices))


def process(pid: int, memory: int | None = 5 * MIB, kinds: tuple[str, ...] = ("compute",)) -> Process:
    return Process(pid=pid, kinds=kinds, memory_bytes=memory)


def of_pod(pid: int, namespace: str, pod: str) -> Holder:
    return Holder(pid=pid, kind="pod", container=ContainerRef(namespace, pod, "main", "uid"))


def test_the_page_with_the_labels_of_the_readme(golden: Golden) -> None:
    golden("dialects/gpu-mem-monitor/readme.txt", text(families(SNAPSHOT, README)))


def test_the_page_with_later_labels(golden: Golden) -> None:
    golden("dialects/gpu-mem-monitor/later.txt", text(families(SNAPSHOT, LATER)))


async def test_a_shared_card_with_a_host_process_and_a_docker_container(tmp_path: Path, golden: Golden) -> None:
    snapshot = await played(script("time-slicing"), tmp_path)
    golden("dialects/gpu-mem-monitor/time-slicing.txt", text(families(snapshot, LATER)))


def test_the_line_of_the_readme() -> None:
    """Without the labels that Prometheus had added, and with a value, which is missing there."""
    card = Gpu(uuid="GPU-78d64296-8254-ef39-35ec-cb35bd6e6192", index=0, model="GeForce GTX 1080 Ti")
    holder = of_pod(31563, "xmcvt", "xmcvt-speech-speed-detect-77b7bbdb96-sjjdq")
    page = families(node(Device(gpu=card, processes=(process(31563),)), holders=(holder,)), README)
    assert text(page) == (
        "# HELP pod_used_gpu_mem_MB . Pod使用的GPU显存大小\n"
        "# TYPE pod_used_gpu_mem_MB gauge\n"
        'pod_used_gpu_mem_MB{app_pid="31563",gpu_name="GeForce GTX 1080 Ti",'
        'gpu_uuid="GPU-78d64296-8254-ef39-35ec-cb35bd6e6192",'
        'pod_name="xmcvt-speech-speed-detect-77b7bbdb96-sjjdq",pod_namespace="xmcvt"} 5\n'
    )


def test_the_processes_of_the_readme_each_have_a_series_on_the_cards_they_share() -> None:
    devices = [
        Device(
            gpu=Gpu(uuid=f"GPU-{index}", index=index, model="TITAN V"),
            processes=tuple(process(pid, size * MIB) for card, pid, size in LISTED if card == index),
        )
        for index in range(8)
    ]
    holders = tuple(of_pod(pid, "ai", f"pod-{pid}") for _, pid, _ in LISTED)
    found = values(families(node(*devices, holders=holders), LATER), NAME)
    assert found == {
        f'{{hostIP="10.244.19.248",app_pid="{pid}",gpu_name="TITAN V",UUID="GPU-{card}",gpu="{card}",'
        f'pod="pod-{pid}",namespace="ai"}}': size
        for card, pid, size in LISTED
    }


def test_programs_outside_kubernetes_are_named_as_in_each_version() -> None:
    device = Device(gpu=CARD, processes=(process(1), process(2)))
    holders = (
        Holder(pid=1, kind="host"),
        Holder(pid=2, kind="container", owner=Owner(container_id="d" * 64)),
    )
    host, docker = values(families(node(device, holders=holders), LATER), NAME)
    assert 'pod="服务器直接运行的程序",namespace="null"' in host
    assert 'pod="docker run运行的程序",namespace="null"' in docker
    for labels in values(families(node(device, holders=holders), README), NAME):
        assert 'pod_name="null",pod_namespace="null"' in labels


def test_programs_on_a_machine_without_kubernetes_are_named_so_too() -> None:
    titled = Holder(pid=1, kind="container", container=ContainerRef("", "", "docker/web"), title="docker/web")
    (labels,) = values(families(node(Device(gpu=CARD, processes=(process(1),)), holders=(titled,)), LATER), NAME)
    assert 'pod="docker run运行的程序"' in labels


def test_a_process_of_an_unknown_owner_has_no_pod() -> None:
    """Its cgroup alone names a pod, which anybody can imitate."""
    holder = Holder(pid=2, kind="pod", owner=Owner(pod_uid="uid"), reason="not_in_pod")
    device = Device(gpu=CARD, processes=(process(1), process(2)))
    for labels in values(families(node(device, holders=(holder,)), README), NAME):
        assert 'pod_name="",pod_namespace=""' in labels


def test_unknown_memory_and_ended_processes_are_left_out() -> None:
    device = Device(gpu=CARD, processes=(process(1, None), process(2, kinds=())))
    assert text(families(node(device), README)) == ""


def test_a_process_on_two_instances_of_a_card_is_added_up() -> None:
    device = Device(gpu=CARD, processes=(process(1), process(1, 2 * MIB)))
    assert list(values(families(node(device), README), NAME).values()) == [7.0]


def test_memory_is_in_whole_mebibytes_as_in_nvidia_smi() -> None:
    device = Device(gpu=CARD, processes=(process(1, 3 * MIB - 1),))
    assert list(values(families(node(device), README), NAME).values()) == [2.0]


def test_the_address_of_the_node_can_be_set_in_several_ways() -> None:
    wanted = {"dialect_gpu_mem_monitor_labels": ["later"]}
    device = Device(gpu=CARD, processes=(process(1),))
    for config, address in (
        (load(wanted, {}).of(GpuMemMonitorOptions), ""),
        (load(wanted, {"hostIP": "10.0.0.2"}).of(GpuMemMonitorOptions), "10.0.0.2"),
        (
            load(wanted | {"node_ip": ["10.0.0.3"]}, {"HOST_IP": "10.0.0.1"}).of(GpuMemMonitorOptions),
            "10.0.0.3",
        ),
    ):
        (labels,) = values(families(node(device), config), NAME)
        assert labels.startswith(f'{{hostIP="{address}",')


def test_without_a_setting_the_address_is_what_kubernetes_says() -> None:
    config = load({"dialect_gpu_mem_monitor_labels": ["later"]}, {}).of(GpuMemMonitorOptions)
    device = Device(gpu=CARD, processes=(process(1),))
    addresses = {"x": "", "y": "10.0.0.7"}
    pods = tuple(Pod(namespace="a", name=name, uid=name, host_ip=ip) for name, ip in addresses.items())
    (labels,) = values(families(replace(node(device), pods=pods, address="10.0.0.9"), config), NAME)
    assert labels.startswith('{hostIP="10.0.0.7",')


def test_without_a_pod_it_is_that_of_the_machine() -> None:
    config = load({"dialect_gpu_mem_monitor_labels": ["later"]}, {}).of(GpuMemMonitorOptions)
    machine = replace(node(Device(gpu=CARD, processes=(process(1),))), pods=(), address="10.0.0.9")
    (labels,) = values(families(machine, config), NAME)
    assert labels.startswith('{hostIP="10.0.0.9",')


def test_promtool_complains_about_the_inherited_name_only() -> None:
    assert complaints(families(SNAPSHOT, README)) <= {NAME}


@given(NODES, st.sampled_from([README, LATER]))
def test_no_snapshot_gives_a_series_twice(snapshot: Snapshot, config: GpuMemMonitorOptions) -> None:
    check_series(families(snapshot, config))
