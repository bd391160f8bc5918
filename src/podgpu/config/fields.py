"""Every option of podgpu. One field is the flag, the environment name, the file key and the docs."""
# ruff: noqa: RUF009 - one, at_most_one and many return dataclass fields

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podgpu.config.address import Address
from podgpu.config.dialects import DialectOptions
from podgpu.config.option import (
    GENERAL,
    KUBERNETES,
    LOG,
    SOURCE,
    WEB,
    Environ,
    Option,
    at_most_one,
    many,
    one,
    options_of,
)
from podgpu.config.value import (
    OneOf,
    api_server,
    duration,
    existing_file,
    existing_folder,
    page_address,
    ratio_file,
    size,
    whole,
)


def _this_node(environ: Environ) -> str:
    return environ.get("NODE_NAME") or os.uname().nodename


@dataclass(frozen=True, kw_only=True)
class Config(DialectOptions):
    config_file: Path | None = at_most_one(
        Option(
            flag="--config.file",
            group=GENERAL,
            help="YAML file with any of these options.",
            parse=Path,
            value_name="PATH",
            default_note="none",
            in_file=False,
        )
    )
    interval: float = one(
        Option(
            flag="--interval",
            group=GENERAL,
            help="Time between two readings, from 100ms to 5m.",
            parse=duration("100ms", "5m"),
            value_name="DURATION",
            default="5s",
        )
    )
    node_name: str = one(
        Option(
            flag="--node-name",
            group=GENERAL,
            help="Name of this node, as Kubernetes knows it.",
            parse=str,
            value_name="NAME",
            default=_this_node,
            default_note="$NODE_NAME, else the hostname",
        )
    )
    source: str = one(
        Option(
            flag="--source",
            group=SOURCE,
            help="Where the numbers come from: the driver, the page of a dcgm-exporter, or both. The simulator makes "
            "them up.",
            parse=OneOf(("nvml", "dcgm", "nvml+dcgm", "simulator")),
            default="nvml",
        )
    )
    nvml_library: Path | None = at_most_one(
        Option(
            flag="--nvml.library",
            group=SOURCE,
            help="The driver's libnvidia-ml.so.1.",
            parse=existing_file,
            value_name="PATH",
            default_note="where the system finds it",
        )
    )
    dcgm_url: str | None = at_most_one(
        Option(
            flag="--dcgm.url",
            group=SOURCE,
            help="The page of this node's dcgm-exporter.",
            parse=page_address,
            value_name="URL",
            default_note="found by the API server",
        )
    )
    dcgm_selector: str = one(
        Option(
            flag="--dcgm.selector",
            group=SOURCE,
            help="Labels by which the API server finds the dcgm-exporter of this node.",
            parse=str,
            value_name="SELECTOR",
            default="app.kubernetes.io/name=dcgm-exporter",
        )
    )
    dcgm_namespace: str | None = at_most_one(
        Option(
            flag="--dcgm.namespace",
            group=SOURCE,
            help="The namespace it runs in. Without it, any pod with these labels is believed.",
            parse=str,
            value_name="NAME",
            default_note="any",
        )
    )
    dcgm_nodes: str = one(
        Option(
            flag="--dcgm.nodes",
            group=SOURCE,
            help="Whose dcgm-exporters are looked for: this node's, or all nodes' for one view of a cluster.",
            parse=OneOf(("this", "all")),
            default="this",
        )
    )
    dcgm_timeout: float = one(
        Option(
            flag="--dcgm.timeout",
            group=SOURCE,
            help="How long its page may take, from 100ms to 1m.",
            parse=duration("100ms", "1m"),
            value_name="DURATION",
            default="10s",
        )
    )
    dcgm_max_bytes: int = one(
        Option(
            flag="--dcgm.max-bytes",
            group=SOURCE,
            help="How large its page may be, several together, from 64KiB to 256MiB.",
            parse=size("64KiB", "256MiB"),
            value_name="SIZE",
            default="16MiB",
        )
    )
    path_procfs: Path = one(
        Option(
            flag="--path.procfs",
            group=SOURCE,
            help="Where the host's /proc is mounted.",
            parse=existing_folder,
            value_name="PATH",
            default="/proc",
        )
    )
    path_root: Path = one(
        Option(
            flag="--path.root",
            group=SOURCE,
            help="Where the host's root is mounted, for names of users and containers outside Kubernetes.",
            parse=existing_folder,
            value_name="PATH",
            default="/",
        )
    )
    path_kubelet: Path = one(
        Option(
            flag="--path.kubelet",
            group=KUBERNETES,
            help="The kubelet's folder, with its pod-resources and pods-api sockets.",
            parse=Path,
            value_name="PATH",
            default="/var/lib/kubelet",
        )
    )
    path_logs: Path = one(
        Option(
            flag="--path.logs",
            group=KUBERNETES,
            help="The folder that holds the kubelet's pods and containers log folders.",
            parse=Path,
            value_name="PATH",
            default="/var/log",
        )
    )
    kube_api: str = one(
        Option(
            flag="--kube.api",
            group=KUBERNETES,
            help="The API server: auto (the cluster's own, if there is a service account), off, or a URL.",
            parse=api_server,
            value_name="auto|off|URL",
            default="auto",
        )
    )
    kube_pod_labels: tuple[str, ...] = many(
        Option(
            flag="--kube.pod-labels",
            group=KUBERNETES,
            help="Pod labels to show on podgpu_pod_info; may be repeated.",
            parse=str,
            value_name="KEY",
            default_note="none",
        )
    )
    kube_workload_labels: tuple[str, ...] = many(
        Option(
            flag="--kube.workload-labels",
            group=KUBERNETES,
            help="Pod labels that name the workload instead of its owner; the first present wins.",
            parse=str,
            value_name="KEY",
            default_note="none",
        )
    )
    sharing_ratio_file: tuple[float, ...] | None = at_most_one(
        Option(
            flag="--sharing.ratio-file",
            group=KUBERNETES,
            help="How many virtual GPUs each card is offered as, for plugins that do not tell: a file with one number "
            "for the node, or one for each GPU.",
            parse=ratio_file,
            value_name="PATH",
            default_note="none",
        )
    )
    simulator_seed: int = one(
        Option(
            flag="--simulator.seed",
            group=SOURCE,
            help="The same seed gives the same simulated numbers.",
            parse=whole(0, 2**32 - 1),
            value_name="NUMBER",
            default="1",
        )
    )
    web_listen_address: tuple[Address, ...] = many(
        Option(
            flag="--web.listen-address",
            group=WEB,
            help="Address to listen on, and the dialect its /metrics speaks, such as :9400=dcgm; may be repeated.",
            parse=Address.parse,
            value_name="HOST:PORT[=DIALECT]",
            default=":19400",
        )
    )
    web_max_requests: int = one(
        Option(
            flag="--web.max-requests",
            group=WEB,
            help="Requests answered at a time; more get a 503 at once.",
            parse=whole(1, 10_000),
            value_name="NUMBER",
            default="40",
        )
    )
    web_max_connections: int = one(
        Option(
            flag="--web.max-connections",
            group=WEB,
            help="Connections held open at a time.",
            parse=whole(1, 100_000),
            value_name="NUMBER",
            default="256",
        )
    )
    series_limit: int = one(
        Option(
            flag="--series.limit",
            group=WEB,
            help="Series on one page; beyond it the least important are dropped and counted.",
            parse=whole(100, 10_000_000),
            value_name="NUMBER",
            default="20000",
        )
    )
    series_processes: str = one(
        Option(
            flag="--series.processes",
            group=WEB,
            help="Whether each process has series of its own.",
            parse=OneOf(("on", "off")),
            default="off",
        )
    )
    log_level: str = one(
        Option(
            flag="--log.level",
            group=LOG,
            help="The least important messages to write.",
            parse=OneOf(("debug", "info", "warn", "error")),
            default="info",
        )
    )
    log_format: str = one(
        Option(
            flag="--log.format",
            group=LOG,
            help="How log lines are written to stderr.",
            parse=OneOf(("logfmt", "json")),
            default="logfmt",
        )
    )


OPTIONS: dict[str, Option[Any]] = dict(options_of(Config))
