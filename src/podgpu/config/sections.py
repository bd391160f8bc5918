"""Collects all options: the core's, those of sources and dialects, the cluster's, the store's and the terminal's."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from podgpu.cluster.login_options import LoginOptions
from podgpu.cluster.store.options import StoreOptions
from podgpu.config.fields import Config
from podgpu.config.price import prices
from podgpu.model import Prices
from podgpu.option import CLUSTER, GROUPS, STORE, TERMINAL, Option, optional, options_of, repeatable, single
from podgpu.option.value import OneOf, base_address, duration, named, named_address, whole
from podgpu.sources import registry
from podgpu.views.dialects import dialects


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
    upstreams: tuple[tuple[str, str], ...] = repeatable(
        "--cluster.upstreams",
        group=CLUSTER,
        help="Other clusters to show side by side: the name of each and the address of its `podgpu cluster`; may be "
        "repeated.",
        parse=named_address,
        default_note="none",
    )
    contexts: tuple[tuple[str, str], ...] = repeatable(
        "--cluster.contexts",
        group=CLUSTER,
        help="Contexts of the kubeconfig to read side by side, each as CONTEXT or NAME=CONTEXT; may be repeated.",
        parse=named,
        value_name="NAME=CONTEXT",
        default_note="none",
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


@dataclass(frozen=True, kw_only=True)
class TerminalOptions:
    url: str | None = optional(
        "--url",
        group=TERMINAL,
        help="The agent or `podgpu cluster` to read.",
        parse=base_address,
        default_note="the agent on this machine, else the cluster of the kubeconfig",
    )


@dataclass(frozen=True, kw_only=True)
class PriceOptions:
    price: Prices | None = optional(
        "--price",
        group=STORE,
        help="YAML or JSON file with what an hour of each model of GPU costs.",
        parse=prices,
    )


def _sections() -> tuple[type, ...]:
    """List each class of options once, since several dialects may share a class."""
    declared = [section for entry in registry.entries().values() for section in entry.sections]
    declared += [dialect.options for dialect in dialects() if dialect.options]
    others = [ClusterOptions, LoginOptions, StoreOptions, PriceOptions, TerminalOptions]
    return tuple(dict.fromkeys([*declared, *others]))


def collected(sections: Iterable[type]) -> dict[str, Option[Any]]:
    """Return the options by their Python names, sorted by group and then in the order of declaration."""
    found: dict[str, Option[Any]] = {}
    for option in (option for section in sections for option in options_of(section).values()):
        if option.name in found:
            raise ValueError(f"two options are called {option.flag}; give one of them another flag")
        found[option.name] = option
    return dict(sorted(found.items(), key=lambda item: GROUPS.index(item[1].group)))


SECTIONS = _sections()
OPTIONS = collected((Config, *SECTIONS))
