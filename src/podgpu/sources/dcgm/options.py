from dataclasses import dataclass

from podgpu.option import SOURCE
from podgpu.option.value import absolute_path, duration, page_address, size, whole


@dataclass(frozen=True, kw_only=True)
class DcgmOptions:
    url: str | None = SOURCE.optional(
        "--dcgm.url",
        help="The page of this node's dcgm-exporter.",
        parse=page_address,
        value_name="URL",
        default_note="found through the API server",
    )
    selector: str = SOURCE.single(
        "--dcgm.selector",
        help="Labels of the dcgm-exporter pods, to find this node's through the API server.",
        parse=str,
        value_name="SELECTOR",
        default="app.kubernetes.io/name=dcgm-exporter",
        also_from=("DCGM_LABELS",),
    )
    namespace: str = SOURCE.single(
        "--dcgm.namespace",
        help="The namespace of dcgm-exporter's DaemonSet. A pod elsewhere is no exporter, whatever its labels are.",
        parse=str,
        default="gpu-operator",
    )
    port: int | None = SOURCE.optional(
        "--dcgm.port-number",  # Kubernetes sets …_PORT for a Service of that name
        help="The port of dcgm-exporter's pods.",
        parse=whole(1, 65535),
        value_name="PORT",
        default_note="the pod's port with the name metrics, else 9400",
    )
    path: str = SOURCE.single(
        "--dcgm.path",
        help="The path of the page on dcgm-exporter's pods.",
        parse=absolute_path,
        value_name="PATH",
        default="/metrics",
        also_from=("DCGM_METRICS_ENDPOINT",),
    )
    timeout: float = SOURCE.single(
        "--dcgm.timeout",
        help="How long a page may take, from 100ms to 1m.",
        parse=duration("100ms", "1m"),
        default="10s",
    )
    max_bytes: int = SOURCE.single(
        "--dcgm.max-bytes",
        help="How large a page may be, or several of one node together, from 64KiB to 256MiB.",
        parse=size("64KiB", "256MiB"),
        default="16MiB",
    )
