from dataclasses import dataclass

from podgpu.option import SOURCE, Option, at_most_one, one
from podgpu.option.value import absolute_path, duration, page_address, size, whole


@dataclass(frozen=True, kw_only=True)
class Options:
    url: str | None = at_most_one(
        Option(
            flag="--dcgm.url",
            group=SOURCE,
            help="The page of this node's dcgm-exporter.",
            parse=page_address,
            value_name="URL",
            default_note="found through the API server",
        )
    )
    selector: str = one(
        Option(
            flag="--dcgm.selector",
            group=SOURCE,
            help="Labels of the dcgm-exporter pods, to find this node's through the API server.",
            parse=str,
            value_name="SELECTOR",
            default="app.kubernetes.io/name=dcgm-exporter",
            also_from=("DCGM_LABELS",),
        )
    )
    namespace: str | None = at_most_one(
        Option(
            flag="--dcgm.namespace",
            group=SOURCE,
            help="The namespace of dcgm-exporter. Without it, podgpu trusts any pod with these labels.",
            parse=str,
            value_name="NAME",
            default_note="any",
        )
    )
    port: int | None = at_most_one(
        Option(
            flag="--dcgm.port-number",  # Kubernetes sets …_PORT for a Service of that name
            group=SOURCE,
            help="The port of dcgm-exporter's pods.",
            parse=whole(1, 65535),
            value_name="PORT",
            default_note="the pod's port with the name metrics, else 9400",
        )
    )
    path: str = one(
        Option(
            flag="--dcgm.path",
            group=SOURCE,
            help="The path of the page on dcgm-exporter's pods.",
            parse=absolute_path,
            value_name="PATH",
            default="/metrics",
            also_from=("DCGM_METRICS_ENDPOINT",),
        )
    )
    timeout: float = one(
        Option(
            flag="--dcgm.timeout",
            group=SOURCE,
            help="How long a page may take, from 100ms to 1m.",
            parse=duration("100ms", "1m"),
            value_name="DURATION",
            default="10s",
        )
    )
    max_bytes: int = one(
        Option(
            flag="--dcgm.max-bytes",
            group=SOURCE,
            help="How large a page may be, or several of one node together, from 64KiB to 256MiB.",
            parse=size("64KiB", "256MiB"),
            value_name="SIZE",
            default="16MiB",
        )
    )
