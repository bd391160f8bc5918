"""The JSON of GPU metrics by container that zxporter's gpu-exporter made from the page of dcgm-exporter.

There is a row for each container and each card or GPU instance that it holds or uses, with the values of the latter.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

import msgspec
from msgspec.structs import replace

from podgpu import catalog
from podgpu.catalog.agent_parts import DCGM, NVML
from podgpu.model import ClusterNode, ContainerRef, Snapshot
from podgpu.views.dialects import Answers, Dialect, UnreadableError
from podgpu.views.dialects._dcgm.counters import FIELDS as DCGM_FIELDS
from podgpu.views.dialects._dcgm.counters import DcgmPageOptions
from podgpu.views.dialects._dcgm.derived import event_mask
from podgpu.views.dialects._dcgm.entity import Entity, Occupant, entities
from podgpu.views.sample_format import in_json
from podgpu.views.text import clean

Object = dict[str, str | float | None]

CLUSTER = "cluster"
_FILTERS = {"pod": "pod", "namespace": "namespace", "container": "container", "node": "node_name"}
_SOURCES = frozenset({NVML.name, DCGM.name})
_NO_CONTAINER = ContainerRef("", "", "")
OPEN, SEPARATOR, CLOSE = b"[\n", b",\n", b"\n]\n"
NO_CONTAINERS = b"[]\n"

_CLOCKS = "clocks_event_reasons"
OMITTED = frozenset({CLUSTER, "mig_profile", "mig_instance_id", "workload_name", "workload_kind"})  # where empty
FIELDS = {
    "sm_active": "DCGM_FI_PROF_SM_ACTIVE",
    "sm_occupancy": "DCGM_FI_PROF_SM_OCCUPANCY",
    "tensor_active": "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "dram_active": "DCGM_FI_PROF_DRAM_ACTIVE",
    "pcie_tx_bytes": "DCGM_FI_PROF_PCIE_TX_BYTES",
    "pcie_rx_bytes": "DCGM_FI_PROF_PCIE_RX_BYTES",
    "nvlink_tx_bytes": "DCGM_FI_PROF_NVLINK_TX_BYTES",
    "nvlink_rx_bytes": "DCGM_FI_PROF_NVLINK_RX_BYTES",
    "graphics_engine_active": "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "framebuffer_total": "DCGM_FI_DEV_FB_TOTAL",
    "framebuffer_used": "DCGM_FI_DEV_FB_USED",
    "framebuffer_free": "DCGM_FI_DEV_FB_FREE",
    "pcie_link_gen": "DCGM_FI_DEV_PCIE_LINK_GEN",
    "pcie_link_width": "DCGM_FI_DEV_PCIE_LINK_WIDTH",
    "temperature": "DCGM_FI_DEV_GPU_TEMP",
    "memory_temperature": "DCGM_FI_DEV_MEMORY_TEMP",
    "power_usage": "DCGM_FI_DEV_POWER_USAGE",
    "gpu_utilization": "DCGM_FI_DEV_GPU_UTIL",
    "int_pipe_active": "DCGM_FI_PROF_PIPE_INT_ACTIVE",
    "fp16_pipe_active": "DCGM_FI_PROF_PIPE_FP16_ACTIVE",
    "fp32_pipe_active": "DCGM_FI_PROF_PIPE_FP32_ACTIVE",
    "fp64_pipe_active": "DCGM_FI_PROF_PIPE_FP64_ACTIVE",
    _CLOCKS: "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
    "xid_errors": "DCGM_FI_DEV_XID_ERRORS",
    "power_violation": "DCGM_FI_DEV_POWER_VIOLATION",
    "thermal_violation": "DCGM_FI_DEV_THERMAL_VIOLATION",
    "sm_clock": "DCGM_FI_DEV_SM_CLOCK",
    "mem_clock": "DCGM_FI_DEV_MEM_CLOCK",
}


_COUNTERS = {key: DCGM_FIELDS[name] for key, name in FIELDS.items() if key != _CLOCKS}
# The readings that the document is made of, by name and labels. Without labels: any.
READINGS = frozenset(
    {
        *((row.name, row.label_values) for row in catalog.device_rows() if row.name == "clock_event"),
        *((row.name, row.label_values) for counter in _COUNTERS.values() for row in counter.rows),
    }
)


@dataclass(frozen=True, slots=True)
class ContainerRow:
    """A container on an entity, or an entity without one."""

    entity: Entity
    occupant: Occupant | None
    values: Mapping[str, float | None]

    @property
    def container(self) -> ContainerRef:
        return self.occupant.container if self.occupant else _NO_CONTAINER

    @property
    def place(self) -> tuple[int, int, ContainerRef]:
        instances = self.entity.instances
        instance = instances[0].mig.gpu_instance_id if instances else -1
        return self.entity.card.gpu.index, instance, self.container


def document(snapshot: Snapshot, options: DcgmPageOptions, query: Mapping[str, str]) -> bytes:
    return answers(snapshot, options)(query)


def of_node(options: DcgmPageOptions, query: Mapping[str, str], node: ClusterNode) -> bytes:
    """Write a node's objects without the brackets around them."""
    if node.snapshot is None or node.state != "fresh":  # old numbers would pass for new ones
        return b""
    written = answers(replace(node.snapshot, node=node.bare_name), options, node.cluster)(query)
    return written.removeprefix(OPEN).removesuffix(CLOSE) if written != NO_CONTAINERS else b""


def answers(snapshot: Snapshot, options: DcgmPageOptions, cluster: str = "") -> Answers:
    """`cluster` is that of the node, where several are read: it is a field and a filter more."""
    filters = {**_FILTERS, **({CLUSTER: CLUSTER} if cluster else {})}
    rows = sorted(_rows(snapshot, split=options.per_container == "on"), key=lambda row: row.place)

    @cache
    def written(missing: float | None) -> tuple[list[tuple[Object, bytes]], bytes]:
        """Return each object with its text, and the text of all."""
        objects = [_object(snapshot, row, missing, cluster) for row in rows]
        texts = [msgspec.json.format(msgspec.json.encode([row]), indent=2) for row in objects]
        # Each without the brackets around it.
        each = [(row, text[len(OPEN) : 1 - len(CLOSE)]) for row, text in zip(objects, texts, strict=True)]
        return each, _listed(text for _, text in each)

    def answer(query: Mapping[str, str]) -> bytes:
        each, whole = written(None if query.get("missing") == "null" else 0)
        wanted = {field: query[name] for name, field in filters.items() if query.get(name)}.items()
        return _listed(text for row, text in each if wanted <= row.items()) if wanted else whole

    return answer


def _listed(texts: Iterable[bytes]) -> bytes:
    objects = SEPARATOR.join(texts)
    return b"".join((OPEN, objects, CLOSE)) if objects else NO_CONTAINERS


def _rows(snapshot: Snapshot, *, split: bool) -> Iterator[ContainerRow]:
    """Yield the rows that have values. With `split`, containers that share an entity have values of their own."""
    for entity in entities(snapshot.cards):
        shared = {
            key: event_mask(entity.card) if key == _CLOCKS else entity.values(_COUNTERS[key]).get(()) for key in FIELDS
        }
        present: Sequence[Occupant | None] = entity.occupants or (None,)
        for occupant in present:
            values = shared
            if occupant and split and len(present) > 1:
                booked = {key: counter for key, counter in _COUNTERS.items() if entity.is_booked(counter)}
                values = shared | {key: occupant.used(counter) for key, counter in booked.items()}
            if any(value is not None for value in values.values()):
                yield ContainerRow(entity, occupant, values)


def _object(snapshot: Snapshot, row: ContainerRow, missing: float | None, cluster: str) -> Object:
    """A row in the order of the document."""
    numbers = {field: missing if value is None else in_json(value) for field, value in row.values.items()}
    taken_at = datetime.fromtimestamp(snapshot.taken_at, UTC).isoformat().replace("+00:00", "Z")
    return {**_identity(snapshot, row, cluster), **numbers, "timestamp": taken_at}


def _identity(snapshot: Snapshot, row: ContainerRow, cluster: str) -> dict[str, str]:
    gpu, container = row.entity.card.gpu, row.container
    workload = row.occupant.workload if row.occupant else None
    facts = {
        CLUSTER: cluster,
        "node_name": snapshot.node,
        "model_name": gpu.model,
        "device": f"nvidia{gpu.index}",
        "device_id": str(gpu.index),
        "device_uuid": gpu.uuid,
        "mig_profile": row.entity.profile,
        "mig_instance_id": row.entity.instance_id,
        "pod": container.pod,
        "container": container.container,
        "namespace": container.namespace,
        "workload_name": workload.name if workload else "",
        "workload_kind": workload.kind if workload else "",
    }
    return {field: clean(text) for field, text in facts.items() if text or field not in OMITTED}


def _served(snapshot: Snapshot, options: DcgmPageOptions) -> Answers:
    """Answer with an empty list without GPUs, and with an error if they could not be read at all."""
    if not snapshot.cards and any(part.name in _SOURCES and not part.up for part in snapshot.parts):
        raise UnreadableError
    return answers(snapshot, options)


DIALECT = Dialect(
    documents={"/container/metrics": _served, "/metrics/container-json": _served}, options=DcgmPageOptions
)
