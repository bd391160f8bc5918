"""The rows of /container/metrics as objects."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from podgpu.model import Snapshot
from podgpu.views.dialects._dcgm.counters import DcgmPageOptions
from podgpu.views.dialects.container_json import FIELDS, OMITTED, document
from podgpu.views.sample_format import in_json

# The names on dcgm-exporter's page that the rows are made of.
METRIC_NAMES = frozenset(FIELDS.values())


class GpuMetric(msgspec.Struct, frozen=True, kw_only=True):
    """A card or GPU instance, for a container that holds or uses it.

    Names and units are those of the JSON document, see docs/compatibility.md. An empty text means that there is none.
    None means unknown, where the document has 0.
    """

    node_name: str = ""
    model_name: str = ""
    device: str = ""
    device_id: str = ""
    device_uuid: str = ""
    mig_profile: str = ""
    mig_instance_id: str = ""
    pod: str = ""
    container: str = ""
    namespace: str = ""
    workload_name: str = ""
    workload_kind: str = ""
    sm_active: float | None = None
    sm_occupancy: float | None = None
    tensor_active: float | None = None
    dram_active: float | None = None
    pcie_tx_bytes: float | None = None
    pcie_rx_bytes: float | None = None
    nvlink_tx_bytes: float | None = None
    nvlink_rx_bytes: float | None = None
    graphics_engine_active: float | None = None
    framebuffer_total: float | None = None
    framebuffer_used: float | None = None
    framebuffer_free: float | None = None
    pcie_link_gen: float | None = None
    pcie_link_width: float | None = None
    temperature: float | None = None
    memory_temperature: float | None = None
    power_usage: float | None = None
    gpu_utilization: float | None = None
    int_pipe_active: float | None = None
    fp16_pipe_active: float | None = None
    fp32_pipe_active: float | None = None
    fp64_pipe_active: float | None = None
    clocks_event_reasons: float | None = None
    xid_errors: float | None = None
    power_violation: float | None = None
    thermal_violation: float | None = None
    sm_clock: float | None = None
    mem_clock: float | None = None
    timestamp: datetime


_decode = msgspec.json.Decoder(list[GpuMetric]).decode


def gpu_metrics(
    snapshot: Snapshot,
    *,
    pod: str = "",
    namespace: str = "",
    container: str = "",
    node: str = "",
    per_container: bool = False,
) -> list[GpuMetric]:
    """List the rows that match all filters. An empty filter matches everything.

    On a shared card every row has the card's values. With `per_container`, use, memory and power are the container's.
    """
    filters = {"pod": pod, "namespace": namespace, "container": container, "node": node}
    options = DcgmPageOptions(per_container="on" if per_container else "off")
    # Decoded from the document itself, so that the two can never differ.
    return _decode(document(snapshot, options, {**filters, "missing": "null"}))


def as_document(rows: Iterable[GpuMetric], *, missing: float | None = 0) -> bytes:
    """Write the rows as /container/metrics has them. `missing` stands for what is not known."""
    return msgspec.json.format(msgspec.json.encode([_object(row, missing) for row in rows]), indent=2) + b"\n"


def _object(row: GpuMetric, missing: float | None) -> dict[str, Any]:
    facts = msgspec.structs.asdict(row).items()
    return {
        name: missing if value is None else in_json(value) if isinstance(value, float) else value
        for name, value in facts
        if value or name not in OMITTED
    }
