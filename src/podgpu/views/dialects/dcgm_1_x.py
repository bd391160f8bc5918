"""dcgm-exporter 1.x with pod-gpu-metrics-exporter: whole cards, and pod labels only on a card with one pod."""

from podgpu.model import Snapshot
from podgpu.views.dialects import Dialect
from podgpu.views.dialects._dcgm.counters import Counter, every
from podgpu.views.dialects._dcgm.entity import Entity, whole, with_xid
from podgpu.views.sample_format import decimals
from podgpu.views.series import Family, Key, Labels

COUNTERS = every(lambda row: (row.dcgm1x,)).values()

FRACTIONS = decimals(3)  # as `dcgmi dmon` prints them, from which 1.x made its page

_DEVICE = ("gpu", "uuid")
_POD = ("pod_name", "pod_namespace", "container_name")


def families(snapshot: Snapshot, _: None) -> list[Family]:
    rows = [(entity, _key(entity)) for entity in (whole(with_xid(card)) for card in snapshot.cards)]
    page = ((counter, _samples(counter, rows)) for counter in COUNTERS)
    return [counter.family(samples, FRACTIONS) for counter, samples in page if samples]


def _key(entity: Entity) -> Key:
    gpu = entity.card.gpu
    device = Labels(_DEVICE, (str(gpu.index), gpu.uuid))
    claims = entity.only_pod
    if not claims:
        return (device,)
    ref = claims[0].container
    container = ref.container if len(claims) == 1 else ""
    return device, Labels(_POD, (ref.pod, ref.namespace, container))


def _samples(counter: Counter, rows: list[tuple[Entity, Key]]) -> dict[Key, float]:
    return {key: value for entity, key in rows for value in entity.values(counter).values()}


DIALECT = Dialect(pages={"/metrics/dcgm-1.x": families, "/gpu/metrics": families})
