from pathlib import Path

from hypothesis import given
from msgspec.structs import replace

from podgpu.config.precedence import load
from podgpu.model import (
    Booking,
    Card,
    Claim,
    ContainerRef,
    Device,
    Gpu,
    Instance,
    MigInstance,
    PartStatus,
    Pod,
    PodContainer,
    Reading,
    Snapshot,
    Tenant,
    VirtualGpu,
)
from podgpu.views.dialects.hami import HamiOptions, families
from podgpu.views.series import Labels
from tests.conftest import Golden
from tests.tree import card
from tests.views.dialects.rig import (
    NODES,
    block,
    check_series,
    complaints,
    joined,
    played,
    script,
    text,
    values,
)

NEW = load({}, {}).of(HamiOptions)
LEGACY = load({"dialect_hami_names": ["legacy"]}, {}).of(HamiOptions)
BOTH = load({"dialect_hami_names": ["both"]}, {}).of(HamiOptions)
GIB = 2**30
CARD = "GPU-0"
POD = ContainerRef("ml", "infer", "main", "u1")

SAMPLE = {"container": "main", "device_uuid": CARD, "namespace": "ml", "pod": "infer", "vdevice_index": "0"}
OLD_SAMPLE = {
    "ctrname": "main",
    "deviceuuid": CARD,
    "podnamespace": "ml",
    "podname": "infer",
    "vdeviceid": "0",
}

DEVICE = Device(
    gpu=Gpu(uuid=CARD, index=0, model="NVIDIA H200"),
    readings=(
        Reading("memory_used_bytes", 30 * GIB),
        Reading("utilization_ratio", 0.07),
        Reading("memory_utilization_ratio", 0.25),
        Reading("temperature_celsius", 50.0, ("gpu",)),
    ),
)
CLAIM = Claim(gpu=CARD, container=POD, system="hami", memory_limit_bytes=16 * GIB, share=0.3, index=0)
HELD = Tenant(
    container=POD,
    claims=(CLAIM,),
    booking=Booking(processes=1, memory_bytes=9 * GIB, sm_ratio=0.5),
    idle=False,
)


def node(*cards: Card) -> Snapshot:
    return Snapshot(node="n", taken_at=1000.0, interval_seconds=5.0, version="test", cards=cards)


def held_by(*tenants: Tenant) -> Snapshot:
    return node(card(DEVICE, tenants=tenants))


NODE = held_by(HELD)
LIBRARY = VirtualGpu(
    pod_uid="u1",
    container="main",
    gpu=CARD,
    memory_limit_bytes=99 * GIB,
    memory_used_bytes=8 * GIB,
    context_bytes=3,
    module_bytes=2,
    buffer_bytes=1,
    sm_ratio=0.9,
    last_kernel_at=990.0,
)
INSIDE = replace(HELD, vgpu=LIBRARY)
WITH_LIBRARY = held_by(INSIDE)


def labels(pairs: dict[str, str]) -> str:
    return block(Labels.by_name({**pairs, "zone": "vGPU"}))


def value(snapshot: Snapshot, name: str, pairs: dict[str, str] = SAMPLE) -> float | None:
    return values(families(snapshot, BOTH), name).get(labels(pairs))


async def test_a_node_of_hami(golden: Golden, tmp_path: Path) -> None:
    snapshot = await played(script("hami"), tmp_path)
    golden("dialects/hami/new.txt", text(families(snapshot, NEW)))
    golden("dialects/hami/legacy.txt", text(families(snapshot, LEGACY)))


def test_both_are_the_new_names_and_then_the_old_ones() -> None:
    assert text(families(WITH_LIBRARY, BOTH)) == (
        text(families(WITH_LIBRARY, NEW)) + text(families(WITH_LIBRARY, LEGACY))
    )


def test_every_series_is_in_the_zone() -> None:
    page = families(WITH_LIBRARY, BOTH)
    assert all('zone="vGPU"' in series for family in page for series in values(page, family.name))


def test_memory_in_use_is_what_the_library_counts() -> None:
    for name in ("hami_vgpu_memory_used_bytes", "hami_container_device_memory_bytes"):
        assert value(WITH_LIBRARY, name) == 8 * GIB
    assert value(WITH_LIBRARY, "vGPU_device_memory_usage_in_bytes", OLD_SAMPLE) == 8 * GIB


def test_the_former_description_of_memory_has_its_kinds_as_labels() -> None:
    kinds = {"context": "3", "module": "2", "data": "1", "offset": str(8 * GIB - 6)}
    assert value(WITH_LIBRARY, "Device_memory_desc_of_container", {**OLD_SAMPLE, **kinds}) == 8 * GIB
    # Without the library nobody knows them.
    assert value(NODE, "Device_memory_desc_of_container", OLD_SAMPLE) == 9 * GIB


def test_without_the_library_memory_in_use_is_what_the_driver_reports() -> None:
    assert value(NODE, "hami_vgpu_memory_used_bytes") == 9 * GIB


def test_the_limit_is_the_schedulers_whatever_the_tenant_writes() -> None:
    assert value(WITH_LIBRARY, "hami_vgpu_memory_limit_bytes") == 16 * GIB
    unlimited = held_by(replace(INSIDE, claims=(Claim(gpu=CARD, container=POD, system="hami", index=0),)))
    assert value(unlimited, "hami_vgpu_memory_limit_bytes") == 99 * GIB


def test_utilization_is_what_the_driver_reports_in_percent() -> None:
    assert value(WITH_LIBRARY, "hami_container_device_utilization_ratio") == 50.0
    unmeasured = held_by(replace(INSIDE, booking=replace(HELD.booking, sm_ratio=None)))
    assert value(unmeasured, "hami_container_device_utilization_ratio") == 90.0


def test_only_the_library_knows_the_kinds_of_memory_and_the_last_kernel() -> None:
    wanted = {
        "hami_vgpu_memory_context_bytes": 3,
        "hami_vgpu_memory_module_bytes": 2,
        "hami_vgpu_memory_buffer_bytes": 1,
        "hami_container_last_kernel_elapsed_seconds": 10,
    }
    assert {name: value(WITH_LIBRARY, name) for name in wanted} == wanted
    assert {value(NODE, name) for name in wanted} == {None}
    assert value(WITH_LIBRARY, "Device_last_kernel_of_container", OLD_SAMPLE) == 10


def test_a_kernel_in_the_future_counts_as_just_run() -> None:
    ahead = held_by(replace(HELD, vgpu=replace(LIBRARY, last_kernel_at=1e12)))
    assert value(ahead, "hami_container_last_kernel_elapsed_seconds") == 0.0


def test_the_utilization_of_a_host_gpu_is_in_percent() -> None:
    host = {"device_index": "0", "device_type": "NVIDIA H200", "device_uuid": CARD, "node": "n"}
    old = {"deviceidx": "0", "devicetype": "NVIDIA H200", "deviceuuid": CARD, "nodeid": "n"}
    assert value(NODE, "hami_host_gpu_utilization_ratio", host) == 7.0
    assert value(NODE, "HostCoreUtilization", old) == 7.0
    assert value(NODE, "HostGPUMemoryUsage", old) == 30 * GIB
    assert value(NODE, "hami_host_gpu_memory_controller_utilization_ratio", host) == 25.0


def test_the_maker_is_put_in_front_of_a_model_that_lacks_it() -> None:
    tesla = card(replace(DEVICE, gpu=Gpu(uuid=CARD, index=0, model="Tesla T4")))
    host = {"device_index": "0", "device_type": "NVIDIA-Tesla T4", "device_uuid": CARD, "node": "n"}
    assert value(node(tesla), "hami_host_gpu_utilization_ratio", host) == 7.0


def test_cards_are_numbered_as_the_scheduler_listed_them() -> None:
    other = Device(gpu=Gpu(uuid="GPU-1", index=1))
    claim = replace(CLAIM, memory_limit_bytes=1)
    first = Tenant(container=POD, claims=(replace(claim, gpu="GPU-1", index=0),))
    second = Tenant(container=POD, claims=(replace(claim, index=1),))
    snapshot = node(card(DEVICE, tenants=[second]), card(other, tenants=[first]))
    name = "hami_vgpu_memory_limit_bytes"
    assert value(snapshot, name, {**SAMPLE, "device_uuid": "GPU-1", "vdevice_index": "0"}) == 1
    assert value(snapshot, name, {**SAMPLE, "device_uuid": CARD, "vdevice_index": "1"}) == 1


def test_a_library_that_names_a_card_its_container_does_not_hold_is_not_believed() -> None:
    others = replace(CLAIM, system="time-slicing")
    forged = replace(LIBRARY, pod_uid="u2")
    other = node(joined(DEVICE, [others], vgpus=[forged]))
    of_cards = ("hami_host", "Host", "hami_gpu", "GPUDevice", "hami_node", "nodeGPU")
    assert not [family for family in families(other, BOTH) if not family.name.startswith(of_cards)]


def test_what_other_systems_gave_is_not_shown() -> None:
    other = held_by(replace(HELD, claims=(replace(CLAIM, system="time-slicing"),)))
    assert value(other, "hami_vgpu_memory_used_bytes") is None


def test_a_slice_is_named() -> None:
    mig = MigInstance(uuid="MIG-1", gpu_instance_id=3, compute_instance_id=0, profile="1g.18gb")
    device = replace(DEVICE, instances=(Instance(mig=mig),))
    claim = Claim(gpu=CARD, mig="MIG-1", container=POD, system="hami", index=0)
    snapshot = node(card(device, tenants=[Tenant(container=POD, mig="MIG-1", claims=(claim,))]))
    ids = {"mig_uuid": "MIG-1", "profile": "1g.18gb", "gpu_instance_id": "3", "compute_instance_id": "0"}
    assert value(snapshot, "hami_mig_device_info", {**SAMPLE, **ids}) == 1.0
    assert value(snapshot, "MigInfo", {**OLD_SAMPLE, "instanceid": "3"}) == 1.0
    place = {"node": "n", "device_index": "0", "device_uuid": CARD}
    assert value(snapshot, "hami_node_gpu_mig_instance_info", {**place, **ids}) == 1.0
    old_place = {"nodeid": "n", "deviceidx": "0", "deviceuuid": CARD}
    assert value(snapshot, "nodeGPUMigInstance", {**old_place, "migname": "1g.18gb-3"}) == 1.0
    located = replace(device, instances=(Instance(mig=replace(mig, start=2)),))
    snapshot = node(card(located, tenants=[Tenant(container=POD, mig="MIG-1", claims=(claim,))]))
    start = {"placement_start": "2"}
    assert value(snapshot, "hami_node_gpu_mig_instance_info", {**place, **ids, **start}) == 1.0


def test_a_slice_that_another_system_gave_is_not_the_schedulers() -> None:
    mig = MigInstance(uuid="MIG-1", gpu_instance_id=3, compute_instance_id=0, profile="1g.18gb")
    claim = Claim(gpu=CARD, mig="MIG-1", container=POD, system="mig")
    device = replace(DEVICE, instances=(Instance(mig=mig),))
    snapshot = node(card(device, tenants=[Tenant(container=POD, mig="MIG-1", claims=(claim,))]))
    assert not values(families(snapshot, BOTH), "hami_node_gpu_mig_instance_info")


def test_a_recreated_pod_is_added_to_the_former_one_of_its_name() -> None:
    again = replace(POD, pod_uid="u2")
    newer = replace(LIBRARY, pod_uid="u2", last_kernel_at=995.0)
    snapshot = held_by(INSIDE, Tenant(container=again, claims=(replace(CLAIM, container=again),), vgpu=newer))
    assert value(snapshot, "hami_vgpu_memory_used_bytes") == 16 * GIB
    assert value(snapshot, "hami_container_last_kernel_elapsed_seconds") == 5.0


def test_promtool_complains_about_inherited_names_only() -> None:
    assert complaints(families(WITH_LIBRARY, NEW)) <= {"hami_gpu_shared_count"}
    legacy = {family.name for family in families(WITH_LIBRARY, LEGACY)}
    assert complaints(families(WITH_LIBRARY, LEGACY)) <= legacy


@given(NODES)
def test_no_snapshot_gives_a_series_twice(snapshot: Snapshot) -> None:
    for config in (NEW, LEGACY, BOTH):
        check_series(families(snapshot, config))


def test_what_the_scheduler_says_of_a_card_is_known_from_its_claims() -> None:
    """Two containers of two pods have a part each, one without a limit of its cores."""
    twin = ContainerRef("team-b", "other", "main", "u9")
    claims = [replace(CLAIM, memory_limit_bytes=10 * GIB, core_limit_ratio=0.3)]
    more = [replace(CLAIM, container=twin, memory_limit_bytes=20 * GIB, core_limit_ratio=None)]
    foreign = replace(CLAIM, container=replace(twin, pod="third", pod_uid="u8"), system="exclusive")
    pods = tuple(
        Pod(
            namespace=ref.namespace,
            name=ref.pod,
            uid=ref.pod_uid,
            phase="Running",
            containers=(PodContainer(name="side"), PodContainer(name=ref.container)),
        )
        for ref in (POD, twin)
    )
    device = replace(DEVICE, readings=(Reading("memory_total_bytes", float(80 * GIB)),))
    page = families(replace(node(joined(device, [*claims, *more, foreign])), pods=pods), BOTH)
    found = {family.name: {block(*labels): number for labels, number in family.samples.items()} for family in page}
    here = 'device_index="0",device_type="NVIDIA H200",device_uuid="GPU-0",node="n"'
    assert found["hami_gpu_memory_limit_bytes"] == {f'{{{here},zone="vGPU"}}': 80 * GIB}
    assert list(found["hami_gpu_memory_allocated_bytes"].values()) == [30 * GIB]
    assert list(found["hami_gpu_core_allocated_ratio"].values()) == [30]
    assert list(found["GPUDeviceCoreLimit"].values()) == [100]
    assert list(found["hami_gpu_shared_count"].values()) == [2]
    assert list(found["hami_node_gpu_memory_allocated_ratio"].values()) == [0.375]
    assert found["vGPUPodsDeviceAllocated"] == {
        f'{{containeridx="1",deviceusedcore="{cores}",deviceuuid="GPU-0",nodename="n",podname="{ref.pod}",'
        f'podnamespace="{ref.namespace}",zone="vGPU"}}': size * GIB
        for ref, cores, size in ((POD, 30, 10), (twin, 0, 20))
    }
    assert list(found["nodeGPUOverview"]) == [
        (
            '{devicecores="30",deviceidx="0",devicememorylimit="81920",devicetype="NVIDIA H200",deviceuuid="GPU-0",'
            'nodeid="n",sharedcontainers="2",zone="vGPU"}'
        )
    ]


def test_without_a_list_of_devices_nobody_knows_what_was_given() -> None:
    page = {family.name for family in families(node(joined(DEVICE, [])), NEW)}
    assert "hami_gpu_core_limit_ratio" in page
    assert "hami_gpu_memory_allocated_bytes" not in page
    listed = PartStatus(name="podresources", up=True)
    page = {family.name for family in families(replace(node(joined(DEVICE, [])), parts=(listed,)), NEW)}
    assert "hami_gpu_memory_allocated_bytes" in page
