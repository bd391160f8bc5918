import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu import library
from podgpu.model import Booking
from tests.patience import PATIENCE
from tests.sources.dcgm.exporter import FakeExporter, recorded

T4 = recorded("k8s_484_lowercase_hostname_t4")
MPS = recorded("gke_mps_vgpu_label_pr432")


def test_a_page_is_a_snapshot_of_its_cards_and_who_holds_them() -> None:
    snapshot = library.read_page(T4, node="worker-1")
    assert snapshot.node == "worker-1"
    [card] = snapshot.cards
    [tenant] = card.tenants
    assert card.gpu.model == "Tesla T4"
    assert tenant.container.pod == "gpu-test"
    assert [(claim.gpu, claim.container) for claim in tenant.claims] == [(card.gpu.uuid, tenant.container)]
    assert snapshot.up


def test_a_page_says_nothing_about_processes_and_books_nothing() -> None:
    [card] = library.read_page(T4).cards
    [tenant] = card.tenants
    assert (tenant.idle, tenant.booking, card.balance) == (None, Booking(), None)
    assert not any((card.ability.sees_processes, card.ability.knows_owners, card.ability.hears_xids))
    assert card.ability.counts_busy


def test_without_a_node_the_host_on_the_page_counts() -> None:
    page = 'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1",Hostname="gpu-node-7"} 40'
    assert library.read_page(page).node == "gpu-node-7"
    assert library.read_page(page, node="worker-1").node == "worker-1"


def test_text_is_as_good_as_bytes() -> None:
    assert library.read_page(T4.decode()).cards == library.read_page(T4).cards


def test_a_shared_card_has_a_claim_for_each_of_its_pods() -> None:
    [card] = library.read_page(MPS).cards
    claims = [claim for tenant in card.tenants for claim in tenant.claims]
    assert {claim.system for claim in claims} == {"time-slicing"}
    assert len({claim.container.pod for claim in claims}) == 2


def test_a_page_without_a_card_says_so() -> None:
    snapshot = library.read_page("up 1\n")
    assert snapshot.cards == ()
    [part] = snapshot.parts
    assert part.fault and part.fault.reason == "no_gpu"


def test_what_makes_no_sense_is_counted() -> None:
    snapshot = library.read_page(T4 + b'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID=} hot\n')
    assert [(error.reason, error.count) for error in snapshot.errors] == [("malformed_sample", 1)]


@given(st.text() | st.binary())
def test_no_page_raises(page: str | bytes) -> None:
    assert library.gpu_metrics(library.read_page(page)) == []


@given(st.lists(st.sampled_from(T4.decode().splitlines())), st.text())
def test_no_torn_page_raises(lines: list[str], rubbish: str) -> None:
    library.gpu_metrics(library.read_page("\n".join([*lines, rubbish])))


async def test_a_page_is_fetched_whole() -> None:
    async with FakeExporter(T4) as exporter:
        assert await library.fetch_page(exporter.url) == T4


@pytest.mark.parametrize(
    ("status", "delay", "max_bytes", "reason"),
    [
        (503, 0.0, 1 << 20, "page_refused"),
        (200, 20 * PATIENCE, 1 << 20, "page_late"),
        (200, 0.0, 100, "page_too_large"),
    ],
)
async def test_a_page_that_does_not_come_has_a_reason(status: int, delay: float, max_bytes: int, reason: str) -> None:
    async with FakeExporter(T4, status=status, delay=delay) as exporter:
        seconds = 0.5 if delay else PATIENCE
        with pytest.raises(library.PageFault) as fault:
            await library.fetch_page(exporter.url, timeout_seconds=seconds, max_bytes=max_bytes)
    assert fault.value.reason == reason
