"""The options of every page in dcgm-exporter's words."""

from dataclasses import dataclass

from podgpu import option
from podgpu.option.file import text_file
from podgpu.option.value import OneOf, OnOff
from podgpu.views.dialects._dcgm.collectors import Collectors, collectors


@dataclass(frozen=True, kw_only=True)
class DcgmPageOptions:
    collectors: Collectors | None = option.optional(
        "--dcgm.collectors",
        group=option.DIALECTS,
        help="Counters of the dcgm pages: a CSV file as dcgm-exporter reads it.",
        parse=text_file(
            collectors, kibibytes=1024, advice="give a file of counters, as dcgm-exporter reads it"
        ),
        default_note="dcgm-exporter's default counters",
        also_from=("DCGM_EXPORTER_COLLECTORS",),
    )
    hostname_label: str = option.single(
        "--dcgm.hostname-label",
        group=option.DIALECTS,
        help="How /metrics/dcgm spells the node's label: dcgm-exporter changed it in 4.8.3.",
        parse=OneOf(("Hostname", "hostname")),
        default="Hostname",
    )
    per_container: str = option.single(
        "--dcgm.per-container",
        group=option.DIALECTS,
        help="Whether the dcgm pages and container-json have a row for each container of a shared GPU.",
        parse=OnOff(),
        default="off",
        also_from=("KUBERNETES_VIRTUAL_GPUS",),
    )
    pod_uid: str = option.single(
        "--dcgm.pod-uid",
        group=option.DIALECTS,
        help="Whether rows of the dcgm pages carry the UID of their pod.",
        parse=OnOff(),
        default="off",
        also_from=("DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID",),
    )
    pod_labels: str = option.single(
        "--dcgm.pod-labels",
        group=option.DIALECTS,
        help="Whether rows of the dcgm pages carry the labels of their pod that --kube.pod-labels allows.",
        parse=OnOff(),
        default="off",
        also_from=("DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS",),
    )
