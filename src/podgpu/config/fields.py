"""The options that belong to no source and no dialect."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from podgpu.config.values import RATIO_FILE, family_name, level, listener, ratio_file
from podgpu.option import GENERAL, KUBERNETES, LOG, SOURCE, WEB
from podgpu.option.file import existing_file
from podgpu.option.value import Address, OneOf, api_server, duration, header_name, network, on_off, path, size, whole
from podgpu.sources import registry

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a user chose. For the options of a source or dialect use `config.of`, as in `config.of(CadvisorOptions)`.

    `sections` holds the instances of those classes that differ from their defaults. `outdated` lists the former names
    that were used, each with the current one. `unknown` lists environment variables that look like options and are
    none, each with advice.
    """

    sections: tuple[object, ...] = ()
    outdated: tuple[tuple[str, str], ...] = ()
    unknown: tuple[tuple[str, str], ...] = ()
    config_file: Path | None = GENERAL.optional(
        "--config.file",
        help="YAML file with any of these options.",
        parse=path,
        in_file=False,
    )
    interval: float = GENERAL.single(
        "--interval",
        help="Time between two readings, from 100ms to 5m.",
        parse=duration("100ms", "5m"),
        default="5s",
        also_from=("GPU_REFRESH_INTERVAL_SECONDS",),
    )
    idle_after: float = GENERAL.single(
        "--idle.after",
        help="How long a holder must leave its GPU unused to count as idle, on the page, in metrics, commands and "
        "alerts. From 1m to 720h.",
        parse=duration("1m", "720h"),
        default="30m",
    )
    node_name: str | None = GENERAL.optional(
        "--node-name",
        help="Name of this node, as Kubernetes knows it.",
        parse=str,
        default_note="the hostname",
        also_from=("NODE_NAME",),
    )
    source: str = SOURCE.single(
        "--source",
        help=f"Where the numbers come from: {registry.listing()}.",
        parse=OneOf(tuple(registry.entries())),
        default=registry.default().name,
    )
    switches: str = SOURCE.single(
        "--switches",
        help="Whether to read the driver's log of context switches: check reads it at random moments, a twelfth of "
        "the time at most, while a card has processes of more than one owner, and corrects the driver's samples; "
        "auto reads it all that time; on reads it on every card.",
        parse=OneOf(("off", "check", "auto", "on")),
        default="off",
    )
    path_procfs: Path = SOURCE.single(
        "--path.procfs",
        help="Where the host's /proc is mounted.",
        parse=path,
        default="/proc",
    )
    path_root: Path = SOURCE.single(
        "--path.root",
        help="Where the host's root is mounted, for names of users and containers outside Kubernetes.",
        parse=path,
        default="/",
    )
    sharing_namespaces: tuple[str, ...] = KUBERNETES.repeatable(
        "--sharing.namespaces",
        help="The namespaces in which sharing systems make pods that hold cards for others, in place of the usual "
        "ones. No tenant may be able to make pods there; may be repeated.",
        parse=str,
        default_note="those that the systems use by themselves",
    )
    sharing_ratio_file: tuple[float, ...] | None = KUBERNETES.optional(
        "--sharing.ratio-file",
        help="Into how many virtual GPUs each card is divided, for plugins that do not report it: a file with one "
        "number for the node, or one for each GPU.",
        parse=ratio_file,
        default_note=f"{RATIO_FILE} in the working directory, if there is one",
    )
    path_state: Path | None = KUBERNETES.optional(
        "--path.state",
        help="The agent's own folder, where it keeps what annotations gave to pods. A pod whose annotation is removed "
        "while the agent restarts still has its share.",
        parse=path,
        default_note="none: it is forgotten at a restart",
    )
    path_kubelet: Path = KUBERNETES.single(
        "--path.kubelet",
        help="The kubelet's folder, with its pod-resources and pods-api sockets.",
        parse=path,
        default="/var/lib/kubelet",
    )
    path_logs: Path = KUBERNETES.single(
        "--path.logs",
        help="The folder that holds the kubelet's pods and containers log folders.",
        parse=path,
        default="/var/log",
    )
    kube_api: str = KUBERNETES.single(
        "--kube.api",
        help="The API server: auto (the cluster's own, if there is a service account), off, or a URL.",
        parse=api_server,
        value_name="auto|off|URL",
        default="auto",
    )
    kube_pods: str = KUBERNETES.single(
        "--kube.pods",
        help="Who lists the node's pods: auto (the kubelet's Pods API, else the API server, else the log folders), or "
        "kubelet, which needs no right to list pods.",
        parse=OneOf(("auto", "kubelet")),
        default="auto",
    )
    kube_token_file: Path | None = KUBERNETES.optional(
        "--kube.token-file",
        help="File with a token for the API server at --kube.api=URL; read again for every request.",
        parse=existing_file,
    )
    kube_ca_file: Path | None = KUBERNETES.optional(
        "--kube.ca-file",
        help="Certificate authority of the API server at --kube.api=URL; read again when it changes.",
        parse=existing_file,
        default_note="the system's",
    )
    kube_client_cert_file: Path | None = KUBERNETES.optional(
        "--kube.client-cert-file",
        help="Certificate to show to the API server at --kube.api=URL; read again when it changes.",
        parse=existing_file,
    )
    kube_client_key_file: Path | None = KUBERNETES.optional(
        "--kube.client-key-file",
        help="The key of that certificate, without a password.",
        parse=existing_file,
    )
    kube_kubeconfig: Path | None = KUBERNETES.optional(
        "--kube.kubeconfig",
        alias="--kubeconfig",
        help="Kubeconfig with the API server and the login, in place of --kube.api=URL.",
        parse=existing_file,
        also_from=("KUBE_CONFIG_PATH",),
    )
    kube_context: str | None = KUBERNETES.optional(
        "--kube.context",
        alias="--context",
        help="Context of the kubeconfig to use.",
        parse=str,
        default_note="its current-context",
    )
    kube_pod_labels: tuple[str, ...] = KUBERNETES.repeatable(
        "--kube.pod-labels",
        help="Pod labels to show on podgpu_pod_info; may be repeated.",
        parse=str,
        value_name="KEY",
    )
    kube_workload_labels: tuple[str, ...] = KUBERNETES.repeatable(
        "--kube.workload-labels",
        help="Pod labels that name the workload instead of its owner; the first present wins.",
        parse=str,
        value_name="KEY",
    )
    kube_workload_owner: str = KUBERNETES.single(
        "--kube.workload-owner",
        help="Which owner of a pod is its workload: the topmost (an InferenceService, a JobSet), or the nearest "
        "of Kubernetes' own (their Deployment, their Job).",
        parse=OneOf(("top", "nearest")),
        default="top",
    )
    web_listen_address: tuple[Address, ...] = WEB.repeatable(
        "--web.listen-address",
        help="Address to listen on, and the dialect its /metrics speaks, such as :9400=dcgm; may be repeated.",
        parse=listener,
        value_name="HOST:PORT[=DIALECT]",
        default=":19400",
    )
    web_config_file: Path | None = WEB.optional(
        "--web.config.file",
        help="File with TLS, client certificates and passwords, in the form of Prometheus' web-config.yml.",
        parse=existing_file,
    )
    web_kube_auth: str = WEB.single(
        "--web.kube-auth",
        help="Whether to ask for a bearer token, and let the API server say whether its account may read the page.",
        parse=on_off,
        default="off",
    )
    web_kube_audiences: tuple[str, ...] = WEB.repeatable(
        "--web.kube-audiences",
        help="Audiences of the tokens that --web.kube-auth accepts; one of them is enough. May be repeated.",
        parse=str,
        default_note="the API server's own",
    )
    web_allowed_hosts: tuple[str, ...] = WEB.repeatable(
        "--web.allowed-hosts",
        help="Host names by which browsers may call the agent, against DNS rebinding; IP addresses always may.",
        parse=str,
        default_note="any",
    )
    web_trusted_proxy: "tuple[IPv4Network | IPv6Network, ...]" = WEB.repeatable(
        "--web.trusted-proxy",
        help="Address or CIDR of a proxy that asks for a login: its headers say who has logged in, and from where. "
        "Others need a password or a token. May be repeated.",
        parse=network,
    )
    web_user_header: str = WEB.single(
        "--web.user-header",
        help="Header in which the proxies of --web.trusted-proxy name the user.",
        parse=header_name,
        default="X-Forwarded-User",
    )
    web_probe_address: Address | None = WEB.optional(
        "--web.probe-address",
        help="Address that answers only probes and /metrics, with connections of its own.",
        parse=Address.parse,
        value_name="HOST:PORT[=DIALECT]",
    )
    web_max_requests: int = WEB.single(
        "--web.max-requests",
        help="Pages rendered at a time; more get a 503 at once.",
        parse=whole(1, 10_000),
        default="40",
    )
    web_max_connections: int = WEB.single(
        "--web.max-connections",
        help="Open connections at a time, besides event streams, and 16 times as many that have sent no request yet.",
        parse=whole(1, 100_000),
        default="256",
    )
    web_max_streams: int = WEB.single(
        "--web.max-streams",
        help="Event streams at a time, one for each open page; a tenth of them from one address. More get a 503.",
        parse=whole(1, 100_000),
        default="500",
    )
    history_size: int | None = WEB.optional(
        "--history.size",
        help="The most memory for the last hour, which the page, top and /api/v1/history show; 0 keeps nothing.",
        parse=size("0", "4GiB"),
        default_note="4MiB for a node, 96MiB for podgpu cluster",
    )
    series_limit: int = WEB.single(
        "--series.limit",
        help="Series on one page; beyond it the least important are dropped and counted.",
        parse=whole(100, 10_000_000),
        default="20000",
    )
    series_level: str = WEB.single(
        "--series.level",
        was="--series.processes",
        help="How far down podgpu's own series go: to GPUs, pods, each of their containers, or each process; "
        "billing has only what podgpu report needs.",
        parse=level,
        default="container",
    )
    series_detail: str = WEB.single(
        "--series.detail",
        help="Whether podgpu's own page has the series that few people need: podgpu metrics lists them as detail.",
        parse=on_off,
        default="off",
    )
    series_allow: tuple[str, ...] = WEB.repeatable(
        "--series.allow",
        help="Names of metrics to serve, on every page, and no others; * stands for anything; may be repeated.",
        parse=family_name,
        default_note="all",
    )
    series_deny: tuple[str, ...] = WEB.repeatable(
        "--series.deny",
        help="Names of metrics not to serve, on any page; * stands for anything; may be repeated.",
        parse=family_name,
    )
    log_level: str = LOG.single(
        "--log.level",
        help="The least important messages to write.",
        parse=OneOf(("debug", "info", "warn", "error")),
        default="info",
    )
    log_format: str = LOG.single(
        "--log.format",
        help="How log lines are written to stderr.",
        parse=OneOf(("logfmt", "json")),
        default="logfmt",
    )

    def of(self, section: type[T]) -> T:
        return next((found for found in self.sections if isinstance(found, section)), section())
