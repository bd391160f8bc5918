"""Whom the driver's samples do not represent, and which card samples alone divide, in every view."""

from msgspec.structs import replace

from podgpu.doctor import Status
from podgpu.insight import conclude
from podgpu.model import Card, PartStatus, Sampling, Snapshot
from podgpu.views.table import table
from tests.doctor.sound_node import LLAMA as POD
from tests.doctor.sound_node import TENANT, WHOLE, found
from tests.tree import SETTINGS
from tests.views.quirks import BUSY, LLAMA, band
from tests.views.switches.test_shown import reported
from tests.views.test_bookings import node, of

MISSED = Sampling(checks=20, named_ratio=0.0, resident_ratio=0.52, found="undersampled")
FAVOURED = Sampling(checks=20, named_ratio=0.45, resident_ratio=0.05, found="oversampled")
FAIR = Sampling(checks=20, named_ratio=0.50, resident_ratio=0.52, found="represented")


def compared(sampling: Sampling | None, *, method: str = "checked") -> Card:
    first, *others = BUSY.tenants
    booking = replace(first.booking, method=method, sampling=sampling, band=band(0.3, 0.2, 0.4))
    return replace(BUSY, tenants=(replace(first, booking=booking), *others))


def test_metrics() -> None:
    name, of_pod = "container_sampling_error_ratio", ("pod", LLAMA.pod)
    assert of(node(compared(MISSED)), name, of_pod) == [-0.52]
    assert of(node(compared(FAVOURED)), name, of_pod) == [0.4]
    assert of(node(compared(FAIR)), name, of_pod) == [0.0]
    assert of(node(compared(None)), name, of_pod) == []


def test_the_table() -> None:
    assert "undersampled: on the GPU 52%, sampled 0%" in table(node(compared(MISSED)), 120, colour=False)
    assert "oversampled: on the GPU 5%, sampled 45%" in table(node(compared(FAVOURED)), 120, colour=False)
    assert "sampled" not in table(node(compared(FAIR)), 120, colour=False)


def test_why_accuses_nobody() -> None:
    text = " ".join(reported(node(compared(MISSED))).split())
    assert "The driver's samples do not represent it" in text
    assert "nothing is wrong with it" in text
    assert "52% of the GPU's busy time was its own, samples name it 0%" in text
    assert "represent it" not in reported(node(compared(FAIR)))


def test_doctor() -> None:
    other = replace(TENANT, container=replace(POD, pod="other"))

    def judged(sampling: Sampling | None) -> tuple[Status, str]:
        booking = replace(TENANT.booking, sampling=sampling, method="checked")
        card = replace(WHOLE, tenants=(replace(TENANT, booking=booking), other))
        finding = found("books.sampling", cards=(card,))
        return finding.status, finding.detail

    status, detail = judged(MISSED)
    assert status is Status.PASS
    assert f"samples do not represent {POD.namespace}/{POD.pod}" in detail
    assert judged(FAIR) == (Status.PASS, "the log of context switches agrees with the samples")
    assert judged(None)[0] is Status.PASS


def divided(**changes: object) -> Snapshot:
    """A node whose first card is divided by samples."""
    return conclude(replace(node(compared(None, method="measured")), **changes), SETTINGS)


def note(snapshot: Snapshot) -> str:
    (card,) = (card for card in snapshot.cards if card.gpu.uuid == BUSY.gpu.uuid)
    return card.use.note if card.use else ""


def test_a_card_that_samples_divide_says_so_and_what_would_help() -> None:
    text = note(divided(log_is_off=True))
    assert "Ranges are likely, not proven" in text
    assert "--switches=check would read" in text
    assert "CAP_SYS_ADMIN" not in text
    assert "CAP_SYS_ADMIN" in note(divided())
    assert "Sharing Tenants share this GPU" in reported(divided())
    assert "Ranges are likely, not proven" in found("books.sampling", divided()).detail
    down = PartStatus(name="switches", up=False)
    assert "cannot be read" in note(divided(parts=(down,)))
    assert "--switches" not in note(divided(parts=(replace(down, up=True),)))
    alone = replace(BUSY, tenants=BUSY.tenants[:1], rest=())
    assert note(conclude(node(alone), SETTINGS)) == ""
