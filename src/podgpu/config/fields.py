"""The options that belong to no source and no dialect."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from podgpu.config.values import RATIO_FILE, Level, family_name, listener, ratio_file
from podgpu.option import GENERAL, KUBERNETES, LOG, SOURCE, WEB, optional, repeatable, single
from podgpu.option.file import existing_file
from podgpu.option.value import Address, OneOf, api_server, duration, header_name, network, path, size, whole
from podgpu.sources import registry
from podgpu.views.series import LEVELS

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
    config_file: Path | None = optional(
        "--config.file",
        group=GENERAL,
        help="YAML file with any of these options.",
        parse=path,
        in_file=False,
    )
    interval: float = single(
        "--interval",
        group=GENERAL,
        help="Time between two readings, from 100ms to 5m.",
        parse=duration("100ms", "5m"),
        default="5s",
        also_from=("GPU_REFRESH_INTERVAL_SECONDS",),
    )
    idle_after: float = single(
        "--idle.after",
        group=GENERAL,
        help="A holder that has not used its GPU for so long counts as idle: on the page, in metrics, commands and "
        "alerts. From 1m to 720h.",
        parse=duration("1m", "720h"),
        default="30m",
    )
    node_name: str | None = optional(
        "--node-name",
        group=GENERAL,
        help="Name of this node, as Kubernetes knows it.",
        parse=str,
        value_name="NAME",
        default_note="the hostname",
        also_from=("NODE_NAME",),
    )
    source: str = single(
        "--source",
        group=SOURCE,
        help=f"Where the numbers come from: {registry.listing()}.",
        parse=OneOf(tuple(registry.entries())),
        default=registry.default().name,
    )
    switches: str = single(
        "--switches",
        group=SOURCE,
        help="Whether to read the driver's log of context switches: check reads it for a few seconds of each "
        "minute while a card has tenants of more than one owner, to find processes that evade the driver's samples; "
        "auto reads it all that time.",
        parse=OneOf(("off", "check", "auto", "on")),
        default="off",
    )
    path_procfs: Path = single(
        "--path.procfs",
        group=SOURCE,
        help="Where the host's /proc is mounted.",
        parse=path,
        default="/proc",
    )
    path_root: Path = single(
        "--path.root",
        group=SOURCE,
        help="Where the host's root is mounted, for names of users and containers outside Kubernetes.",
        parse=path,
        default="/",
    )
    sharing_namespaces: tuple[str, ...] = repeatable(
        "--sharing.namespaces",
        group=KUBERNETES,
        help="Further namespaces in which a sharing system makes pods that hold cards for others. No tenant may be "
        "able to make pods there; may be repeated.",
        parse=str,
        value_name="NAME",
        default_note="those that the systems use by themselves",
    )
    sharing_ratio_file: tuple[float, ...] | None = optional(
        "--sharing.ratio-file",
        group=KUBERNETES,
        help="Into how many virtual GPUs each card is divided, for plugins that do not report it: a file with one "
        "number for the node, or one for each GPU.",
        parse=ratio_file,
        default_note=f"{RATIO_FILE} in the working directory, if there is one",
    )
    path_state: Path | None = optional(
        "--path.state",
        group=KUBERNETES,
        help="The agent's own folder, where it keeps what annotations gave to pods. A pod whose annotation is removed "
        "while the agent restarts still has its share.",
        parse=path,
        default_note="none: it is forgotten at a restart",
    )
    path_kubelet: Path = single(
        "--path.kubelet",
        group=KUBERNETES,
        help="The kubelet's folder, with its pod-resources and pods-api sockets.",
        parse=path,
        default="/var/lib/kubelet",
    )
    path_logs: Path = single(
        "--path.logs",
        group=KUBERNETES,
        help="The folder that holds the kubelet's pods and containers log folders.",
        parse=path,
        default="/var/log",
    )
    kube_api: str = single(
        "--kube.api",
        group=KUBERNETES,
        help="The API server: auto (the cluster's own, if there is a service account), off, or a URL.",
        parse=api_server,
        value_name="auto|off|URL",
        default="auto",
    )
    kube_token_file: Path | None = optional(
        "--kube.token-file",
        group=KUBERNETES,
        help="File with a token for the API server at --kube.api=URL; read again for every request.",
        parse=existing_file,
    )
    kube_ca_file: Path | None = optional(
        "--kube.ca-file",
        group=KUBERNETES,
        help="Certificate authority of the API server at --kube.api=URL; read again when it changes.",
        parse=existing_file,
        default_note="the system's",
    )
    kube_client_cert_file: Path | None = optional(
        "--kube.client-cert-file",
        group=KUBERNETES,
        help="Certificate to show to the API server at --kube.api=URL; read again when it changes.",
        parse=existing_file,
    )
    kube_client_key_file: Path | None = optional(
        "--kube.client-key-file",
        group=KUBERNETES,
        help="The key of that certificate, without a password.",
        parse=existing_file,
    )
    kube_kubeconfig: Path | None = optional(
        "--kube.kubeconfig",
        alias="--kubeconfig",
        group=KUBERNETES,
        help="Kubeconfig with the API server and the login, in place of --kube.api=URL.",
        parse=existing_file,
        also_from=("KUBE_CONFIG_PATH",),
    )
    kube_context: str | None = optional(
        "--kube.context",
        alias="--context",
        group=KUBERNETES,
        help="Context of the kubeconfig to use.",
        parse=str,
        value_name="NAME",
        default_note="its current-context",
    )
    kube_pod_labels: tuple[str, ...] = repeatable(
        "--kube.pod-labels",
        group=KUBERNETES,
        help="Pod labels to show on podgpu_pod_info; may be repeated.",
        parse=str,
        value_name="KEY",
    )
    kube_workload_labels: tuple[str, ...] = repeatable(
        "--kube.workload-labels",
        group=KUBERNETES,
        help="Pod labels that name the workload instead of its owner; the first present wins.",
        parse=str,
        value_name="KEY",
    )
    kube_workload_owner: str = single(
        "--kube.workload-owner",
        group=KUBERNETES,
        help="Which owner of a pod is its workload: the topmost (an InferenceService, a JobSet), or the nearest "
        "of Kubernetes' own (their Deployment, their Job).",
        parse=OneOf(("top", "nearest")),
        default="top",
    )
    web_listen_address: tuple[Address, ...] = repeatable(
        "--web.listen-address",
        group=WEB,
        help="Address to listen on, and the dialect its /metrics speaks, such as :9400=dcgm; may be repeated.",
        parse=listener,
        value_name="HOST:PORT[=DIALECT]",
        default=":19400",
    )
    web_config_file: Path | None = optional(
        "--web.config.file",
        group=WEB,
        help="File with TLS, client certificates and passwords, in the form of Prometheus' web-config.yml.",
        parse=existing_file,
    )
    web_kube_auth: str = single(
        "--web.kube-auth",
        group=WEB,
        help="Whether to ask for a bearer token, and let the API server say whether its account may get the path.",
        parse=OneOf(("on", "off")),
        default="off",
    )
    web_kube_audiences: tuple[str, ...] = repeatable(
        "--web.kube-audiences",
        group=WEB,
        help="Audiences of the tokens that --web.kube-auth accepts; one of them is enough. May be repeated.",
        parse=str,
        value_name="NAME",
        default_note="the API server's own",
    )
    web_allowed_hosts: tuple[str, ...] = repeatable(
        "--web.allowed-hosts",
        group=WEB,
        help="Host names by which browsers may call the agent, against DNS rebinding; IP addresses always may.",
        parse=str,
        value_name="NAME",
        default_note="any",
    )
    web_trusted_proxy: "tuple[IPv4Network | IPv6Network, ...]" = repeatable(
        "--web.trusted-proxy",
        group=WEB,
        help="Address or CIDR of a proxy that asks for a login: its headers say who has logged in, and from where. "
        "Others need a password or a token. May be repeated.",
        parse=network,
        default_note="none",
    )
    web_user_header: str = single(
        "--web.user-header",
        group=WEB,
        help="Header in which the proxies of --web.trusted-proxy name the user.",
        parse=header_name,
        default="X-Forwarded-User",
    )
    web_probe_address: Address | None = optional(
        "--web.probe-address",
        group=WEB,
        help="Address that answers only probes and /metrics, with connections of its own.",
        parse=Address.parse,
        value_name="HOST:PORT[=DIALECT]",
    )
    web_max_requests: int = single(
        "--web.max-requests",
        group=WEB,
        help="Pages made at a time; more get a 503 at once.",
        parse=whole(1, 10_000),
        default="40",
    )
    web_max_connections: int = single(
        "--web.max-connections",
        group=WEB,
        help="Connections held open at a time, without event streams; 16 times as many may wait before they ask.",
        parse=whole(1, 100_000),
        default="256",
    )
    web_max_streams: int = single(
        "--web.max-streams",
        group=WEB,
        help="Event streams at a time, one for each open page; a tenth of them from one address. More get a 503.",
        parse=whole(1, 100_000),
        default="500",
    )
    history_size: int | None = optional(
        "--history.size",
        group=WEB,
        help="The most memory for the last hour, which the page, top and /api/v1/history show; 0 keeps nothing.",
        parse=size("0", "4GiB"),
        default_note="4MiB for a node, 64MiB for podgpu cluster",
    )
    series_limit: int = single(
        "--series.limit",
        group=WEB,
        help="Series on one page; beyond it the least important are dropped and counted.",
        parse=whole(100, 10_000_000),
        default="20000",
    )
    series_level: str = single(
        "--series.level",
        was="--series.processes",
        group=WEB,
        help="How far down podgpu's own series go: to GPUs, pods, each of their containers, or each process; "
        "billing has what podgpu report needs alone.",
        parse=Level(LEVELS),
        default="container",
    )
    series_detail: str = single(
        "--series.detail",
        group=WEB,
        help="Whether podgpu's own page has the series that few people need: podgpu metrics lists them as detail.",
        parse=OneOf(("on", "off")),
        default="off",
    )
    series_allow: tuple[str, ...] = repeatable(
        "--series.allow",
        group=WEB,
        help="Names of metrics to serve, on every page, and no others; * stands for anything; may be repeated.",
        parse=family_name,
        value_name="NAME",
        default_note="all",
    )
    series_deny: tuple[str, ...] = repeatable(
        "--series.deny",
        group=WEB,
        help="Names of metrics not to serve, on any page; * stands for anything; may be repeated.",
        parse=family_name,
        value_name="NAME",
    )
    log_level: str = single(
        "--log.level",
        group=LOG,
        help="The least important messages to write.",
        parse=OneOf(("debug", "info", "warn", "error")),
        default="info",
    )
    log_format: str = single(
        "--log.format",
        group=LOG,
        help="How log lines are written to stderr.",
        parse=OneOf(("logfmt", "json")),
        default="logfmt",
    )

    def of(self, section: type[T]) -> T:
        return next((found for found in self.sections if isinstance(found, section)), section())
