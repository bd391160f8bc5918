"""dcgm-exporter 1.x with pod-gpu-metrics-exporter: cards alone, and pod labels only where there is a pod."""

from collections.abc import Mapping

from podgpu.model import Device, Snapshot
from podgpu.views.dialects import Document, Families
from podgpu.views.dialects._dcgm import xid
from podgpu.views.dialects._dcgm.counters import Counter, every
from podgpu.views.dialects._dcgm.entity import Entity
from podgpu.views.dialects._dcgm.tenancy import Tenancy
from podgpu.views.family import Family, block, pairs_text

COUNTERS = every(lambda row: row.dcgm1x)

_DEVICE = ("gpu", "uuid")
_POD = ("pod_name", "pod_namespace", "container_name")


def families(snapshot: Snapshot, _: None) -> list[Family]:
    tenancy = Tenancy.of(snapshot)
    rows = [(entity, _labels(entity, tenancy)) for entity in map(_card, xid.heard(snapshot))]
    page = (_family(counter, rows) for counter in COUNTERS)
    return [family for family in page if family.samples]


def _card(device: Device) -> Entity:
    return Entity(device)


def _labels(entity: Entity, tenancy: Tenancy) -> str:
    gpu = entity.device.gpu
    device = pairs_text(_DEVICE, (str(gpu.index), gpu.uuid))
    claim = tenancy.holder(entity)
    if claim is None:
        return block(device)
    one = claim.container
    return block(device, pairs_text(_POD, (one.pod, one.namespace, one.container)))


def _family(counter: Counter, rows: list[tuple[Entity, str]]) -> Family:
    samples = {labels: value for entity, labels in rows for value in entity.values(counter).values()}
    return Family(counter.name, counter.kind, counter.help, counter.worth, samples)


PAGES: Mapping[str, Families] = {"/metrics/dcgm-1.x": families, "/gpu/metrics": families}
DOCUMENTS: Mapping[str, Document] = {}
