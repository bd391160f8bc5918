"""Who evades the driver's samples, and who may, in every view."""

from msgspec.structs import replace

from podgpu.doctor import Status
from podgpu.model import Card, Sampling
from podgpu.views.table import table
from tests.doctor.sound_node import LLAMA as POD
from tests.doctor.sound_node import TENANT, WHOLE, found
from tests.views.quirks import BUSY, LLAMA, band
from tests.views.switches.test_shown import reported
from tests.views.test_bookings import node, of

EVADES = Sampling(samples=300, named_ratio=0.0, resident_ratio=0.52, evades=True)
HONEST = Sampling(samples=300, named_ratio=0.50, resident_ratio=0.52)


def compared(sampling: Sampling | None, *, undersampled: bool = False) -> Card:
    first, *others = BUSY.tenants
    doubt = replace(band(0.0, 0.0, 0.9), undersampled=undersampled)
    booking = replace(first.booking, method="measured", sampling=sampling, band=doubt)
    return replace(BUSY, tenants=(replace(first, booking=booking), *others))


def test_metrics() -> None:
    name, of_pod = "container_sampling_evasion_ratio", ("pod", LLAMA.pod)
    assert of(node(compared(EVADES)), name, of_pod) == [0.52]
    assert of(node(compared(HONEST)), name, of_pod) == [0.0]
    assert of(node(compared(None)), name, of_pod) == []


def test_the_table() -> None:
    assert "evades samples: 52%, named 0%" in table(node(compared(EVADES)), 120, colour=False)
    assert "evades" not in table(node(compared(HONEST)), 120, colour=False)


def test_why() -> None:
    text = reported(node(compared(EVADES)))
    assert "shows it on the GPU for 52% of the GPU's busy time, samples name it 0%." in text
    assert "unless a tenant times its work by the samples" in text
    assert "evades" not in reported(node(compared(HONEST)))
    assert "--switches=check would settle it" in reported(node(compared(None, undersampled=True)))
    assert "--switches=check" not in reported(node(compared(None)))


def test_doctor() -> None:
    other = replace(TENANT, container=replace(POD, pod="other"))

    def judged(sampling: Sampling | None, *, undersampled: bool = False) -> tuple[Status, str, str]:
        doubt = replace(band(0.0, 0.0, 0.9), undersampled=undersampled)
        booking = replace(TENANT.booking, sampling=sampling, band=doubt)
        card = replace(WHOLE, tenants=(replace(TENANT, booking=booking), other))
        finding = found("books.sampling", cards=(card,))
        return finding.status, finding.detail, finding.advice

    status, detail, _ = judged(EVADES)
    assert status is Status.WARN
    assert f"{POD.namespace}/{POD.pod} has 52% of the busy time of GPU 0" in detail
    status, detail, advice = judged(None, undersampled=True)
    assert status is Status.WARN
    assert POD.pod in detail
    assert "--switches=check" in advice
    assert judged(HONEST)[:2] == (Status.PASS, "the log of context switches agrees with the samples")
    assert judged(None)[0] is Status.PASS
