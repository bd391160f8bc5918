"""The rows of /container/metrics as objects."""

from datetime import datetime

import msgspec

from podgpu.model import Snapshot
from podgpu.views.dialects._dcgm.options import Options
from podgpu.views.dialects.container_json import document


class GpuMetric(msgspec.Struct, frozen=True, kw_only=True):
    """A card or GPU instance, for a container that holds or uses it.

    Names and units are those of the JSON document, see docs/compatibility.md. An empty text means that there is none.
    None means unknown, where the document has 0.0.
    """

    node_name: str
    model_name: str
    device: str
    device_id: str
    device_uuid: str
    mig_profile: str = ""
    mig_instance_id: str = ""
    pod: str
    container: str
    namespace: str
    workload_name: str = ""
    workload_kind: str = ""
    sm_active: float | None
    sm_occupancy: float | None
    tensor_active: float | None
    dram_active: float | None
    pcie_tx_bytes: float | None
    pcie_rx_bytes: float | None
    nvlink_tx_bytes: float | None
    nvlink_rx_bytes: float | None
    graphics_engine_active: float | None
    framebuffer_total: float | None
    framebuffer_used: float | None
    framebuffer_free: float | None
    pcie_link_gen: float | None
    pcie_link_width: float | None
    temperature: float | None
    memory_temperature: float | None
    power_usage: float | None
    gpu_utilization: float | None
    int_pipe_active: float | None
    fp16_pipe_active: float | None
    fp32_pipe_active: float | None
    fp64_pipe_active: float | None
    clocks_event_reasons: float | None
    xid_errors: float | None
    power_violation: float | None
    thermal_violation: float | None
    sm_clock: float | None
    mem_clock: float | None
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
    options = Options(per_container="on" if per_container else "off")
    # Decoded from the document itself, so that the two can never differ.
    return _decode(document(snapshot, options, {**filters, "missing": "null"}))
