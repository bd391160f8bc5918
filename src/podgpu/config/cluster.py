"""The options of commands that read a whole cluster."""

from dataclasses import dataclass

from podgpu.option import CLUSTER, optional, repeatable, single
from podgpu.option.value import OneOf, base_address, duration, whole


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    name: str | None = optional(
        "--cluster.name",
        group=CLUSTER,
        help="Name of the cluster, shown on its page and in its documents.",
        parse=str,
        value_name="NAME",
    )
    agents: tuple[str, ...] = repeatable(
        "--cluster.agents",
        group=CLUSTER,
        help="Addresses of agents to read, in place of those that the API server knows; may be repeated.",
        parse=base_address,
        default_note="found through the API server",
    )
    selector: str = single(
        "--cluster.selector",
        group=CLUSTER,
        help="Labels of the agents' pods.",
        parse=str,
        value_name="SELECTOR",
        default="app.kubernetes.io/name=podgpu,app.kubernetes.io/component=agent",
    )
    namespace: str = single(
        "--cluster.namespace",
        group=CLUSTER,
        help="The namespace of the agents' DaemonSet. A pod elsewhere is no agent, whatever its labels are.",
        parse=str,
        value_name="NAME",
        default="podgpu",
    )
    daemonset: str = single(
        "--cluster.daemonset",
        group=CLUSTER,
        help="The DaemonSet that runs the agents. A pod that it does not run is no agent, whatever its labels are.",
        parse=str,
        value_name="NAME",
        default="podgpu",
    )
    port: int = single(
        "--cluster.port-number",  # Kubernetes sets …_PORT for a Service of that name
        group=CLUSTER,
        help="The agents' port, where their pods have none with the name http.",
        parse=whole(1, 65535),
        value_name="PORT",
        default="19400",
    )
    via: str = single(
        "--cluster.via",
        group=CLUSTER,
        help="How to reach pods: at their own addresses (direct), through the API server (proxy), or, with auto, "
        "directly from within the cluster and through the API server from elsewhere.",
        parse=OneOf(("auto", "direct", "proxy")),
        default="auto",
    )
    scheme: str = single(
        "--cluster.scheme",
        group=CLUSTER,
        help="How the agents that the API server knows are served: https where they have a web configuration file "
        "with a certificate.",
        parse=OneOf(("http", "https")),
        default="http",
    )
    interval: float = single(
        "--cluster.interval",
        group=CLUSTER,
        help="Time between two readings of every node, from 1s to 10m.",
        parse=duration("1s", "10m"),
        default="15s",
    )
    timeout: float = single(
        "--cluster.timeout",
        group=CLUSTER,
        help="How long a node may take to answer, from 100ms to 1m.",
        parse=duration("100ms", "1m"),
        default="5s",
    )
