from pathlib import Path

import pytest
from hypothesis import given
from msgspec.structs import replace

from podgpu.config.precedence import load
from podgpu.model import (
    Booking,
    Card,
    Claim,
    ContainerRef,
    MigInstance,
    Pod,
    PodContainer,
    Process,
    Reading,
    Snapshot,
    Tenant,
)
from podgpu.views.dialects.cadvisor import CadvisorOptions, families
from podgpu.views.series import Labels
from tests.conftest import Golden
from tests.views.dialects.rig import (
    NODES,
    block,
    check_series,
    complaints,
    played,
    rebooked,
    script,
    text,
    values,
)
from tests.views.hardware import GIB
from tests.views.quirks import BUSY, LLAMA, MIG_A, NOTEBOOK, SLICE, SNAPSHOT, SPLIT, STUCK

DEFAULT = load({}, {}).of(CadvisorOptions)
OF_CARD = load({"dialect_cadvisor_values": ["card"]}, {}).of(CadvisorOptions)

TOTAL = "container_accelerator_memory_total_bytes"
USED = "container_accelerator_memory_used_bytes"
DUTY = "container_accelerator_duty_cycle"


def labels(container: ContainerRef, device: str) -> str:
    names = ("acc_id", "container", "make", "model", "namespace", "pod")
    facts = (device, container.container, "nvidia", "NVIDIA H200", container.namespace, container.pod)
    return block(Labels(names, facts))


def node(*cards: Card) -> Snapshot:
    return replace(SNAPSHOT, cards=cards)


ON_BUSY, ON_SLICE = labels(LLAMA, BUSY.gpu.uuid), labels(SLICE, MIG_A)


@pytest.mark.parametrize(("name", "config"), [("container", DEFAULT), ("card", OF_CARD)])
def test_the_page(name: str, config: CadvisorOptions, golden: Golden) -> None:
    golden(f"dialects/cadvisor/{name}.txt", text(families(SNAPSHOT, config)))


def test_tenants_of_a_card_have_their_own_numbers() -> None:
    page = families(SNAPSHOT, DEFAULT)
    other = labels(NOTEBOOK, BUSY.gpu.uuid)
    assert (values(page, USED)[ON_BUSY], values(page, USED)[other]) == (20 * GIB, 10 * GIB)
    assert (values(page, DUTY)[ON_BUSY], values(page, DUTY)[other]) == (80.0, 15.0)


def test_tenants_of_a_card_show_the_cards_numbers_by_option() -> None:
    page = families(SNAPSHOT, OF_CARD)
    other = labels(NOTEBOOK, BUSY.gpu.uuid)
    assert values(page, USED)[ON_BUSY] == values(page, USED)[other] == 30.5 * GIB
    assert values(page, DUTY)[ON_BUSY] == values(page, DUTY)[other] == 97.0


@pytest.mark.parametrize("config", [DEFAULT, OF_CARD])
def test_the_total_is_the_memory_of_the_device_that_was_given(config: CadvisorOptions) -> None:
    page = values(families(SNAPSHOT, config), TOTAL)
    assert (page[ON_BUSY], page[ON_SLICE]) == (150754820096, 70 * GIB)


def test_a_recreated_pod_is_added_to_the_former_one_but_its_card_counts_once() -> None:
    again = Tenant(
        container=replace(LLAMA, pod_uid="new"),
        processes=(Process(pid=1, kinds=("compute",)),),
        booking=Booking(memory_bytes=GIB),
        idle=False,
    )
    page = families(node(replace(BUSY, tenants=(*BUSY.tenants, again))), DEFAULT)
    assert (values(page, USED)[ON_BUSY], values(page, TOTAL)[ON_BUSY]) == (21 * GIB, 150754820096)


def test_what_is_not_measured_is_left_out() -> None:
    hidden = (rebooked(shown, memory_bytes=None, sm_ratio=None, instance_ratio=None) for shown in SNAPSHOT.cards)
    page = families(node(*hidden), DEFAULT)
    assert (values(page, USED), values(page, DUTY)) == ({}, {})


def test_an_idle_holder_uses_nothing() -> None:
    idle = replace(BUSY.tenants[0], processes=(), booking=Booking(), idle=True)
    page = families(node(replace(BUSY, tenants=(idle,))), DEFAULT)
    assert (values(page, USED), values(page, DUTY)) == ({ON_BUSY: 0.0}, {ON_BUSY: 0.0})


@pytest.mark.parametrize("config", [DEFAULT, OF_CARD])
def test_a_card_that_is_down_has_no_series(config: CadvisorOptions) -> None:
    held = Tenant(container=LLAMA, claims=(Claim(gpu=STUCK.gpu.uuid, container=LLAMA),))
    assert text(families(node(replace(STUCK, tenants=(held,))), config)) == ""


def test_the_activity_of_a_compute_instance_is_that_of_its_gpu_instance() -> None:
    """Both halves share one number. A container alone on one half of the GPU instance is twice as busy there."""
    place, unsized = SPLIT.instances[0], replace(SPLIT.instances[0].mig, multiprocessors=None)
    beside = replace(place.mig, uuid="MIG-beside", compute_instance_id=1)

    def duty(*migs: MigInstance) -> float | None:
        split = replace(SPLIT, instances=tuple(replace(place, mig=mig) for mig in migs))
        page = families(node(rebooked(split, instance_ratio=0.25)), DEFAULT)
        return values(page, DUTY).get(ON_SLICE)

    assert duty(place.mig) == duty(unsized) == 25.0
    assert duty(place.mig, beside) == 50.0
    assert duty(unsized, beside) is None


def test_a_value_that_is_not_a_number_is_left_out() -> None:
    broken = replace(BUSY, readings=(Reading("memory_used_bytes", float("nan")),))
    assert values(families(node(broken), OF_CARD), USED) == {}


async def test_each_slice_is_an_accelerator(golden: Golden, tmp_path: Path) -> None:
    golden("dialects/cadvisor/mig.txt", text(families(await played(script("mig"), tmp_path), DEFAULT)))


def test_promtool_has_no_complaints() -> None:
    assert complaints(families(SNAPSHOT, DEFAULT)) == complaints(families(SNAPSHOT, OF_CARD)) == set()


@given(NODES)
def test_no_snapshot_gives_a_series_twice(snapshot: Snapshot) -> None:
    check_series(families(snapshot, DEFAULT))
    check_series(families(snapshot, OF_CARD))


def test_a_container_has_its_image_and_its_names_at_the_runtime() -> None:
    known = PodContainer(
        name=LLAMA.container,
        container_id="c0ffee",
        image="registry.example/llama:1",
        cgroup="/kubepods/burstable/pod1/c0ffee",
    )
    pod = Pod(namespace=LLAMA.namespace, name=LLAMA.pod, uid=LLAMA.pod_uid, containers=(known,))
    page = families(replace(SNAPSHOT, pods=(pod,)), DEFAULT)
    (found,) = (series for series in values(page, TOTAL) if f'pod="{LLAMA.pod}"' in series)
    assert 'id="/kubepods/burstable/pod1/c0ffee",image="registry.example/llama:1",' in found
    assert 'name="c0ffee"' in found
