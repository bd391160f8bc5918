"""The options of clusters, prices and the terminal, and the collection of all options.

The file with the prices of GPUs and of energy is parsed here too.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from podgpu.cluster.login_options import LoginOptions
from podgpu.cluster.store.options import StoreOptions
from podgpu.config.fields import Config
from podgpu.errors import UserError
from podgpu.model import NodeShare, PriceChange, Prices
from podgpu.option import CLUSTER, GROUPS, STORE, TERMINAL, Option, options_of
from podgpu.option.file import yaml_document
from podgpu.option.value import OneOf, ValueParser, base_address, did_you_mean, duration, named, named_address, whole
from podgpu.sources import registry
from podgpu.views.dialects import dialects

FORM = "docs/report.md shows such a file"
_KEYS = ("currency", "gpu_hour", "kwh", "changes")
_CHANGE_KEYS = ("from", "gpu_hour", "kwh")
_CURRENCY = re.compile(r"\S{1,8}")
_NODE_SHARE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)(%)?")
_PRICE = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")


def _prices(text: str) -> Prices:
    path = Path(text)
    document = yaml_document(path, FORM)
    if not isinstance(document, dict):
        raise UserError(f"{path}: the file must hold currency and gpu_hour; {FORM}")
    _check_keys(path, document, _KEYS)
    currency = document.get("currency")
    if not isinstance(currency, str) or not _CURRENCY.fullmatch(currency):
        raise UserError(f"{path}: currency must be a short word, such as EUR")
    changes = document.get("changes", [])
    if not isinstance(changes, list) or not all(isinstance(change, dict) for change in changes):
        raise UserError(f"{path}: changes must be a list of new prices, each with from and gpu_hour; {FORM}")
    return Prices(
        currency=currency,
        gpu_hour=_by_model(path, document.get("gpu_hour")),
        kwh=_kwh(path, document),
        changes=tuple(sorted((_change(path, change) for change in changes), key=lambda change: change.since)),
    )


def _check_keys(path: Path, document: dict[Any, Any], known: tuple[str, ...]) -> None:
    for key in document:
        if key not in known:
            raise UserError(f"{path}: unknown key {key!r}; {did_you_mean(str(key), known, FORM)}")


def _change(path: Path, change: dict[Any, Any]) -> PriceChange:
    _check_keys(path, change, _CHANGE_KEYS)
    try:
        since = datetime.fromisoformat(str(change.get("from")))
    except ValueError:
        raise UserError(
            f"{path}: from must be a date or a time, such as 2026-11-15, not {change.get('from')!r}"
        ) from None
    since = since if since.tzinfo else since.replace(tzinfo=UTC)
    gpu_hour = _by_model(path, change.get("gpu_hour"))
    return PriceChange(since=since.timestamp(), gpu_hour=gpu_hour, kwh=_kwh(path, change))


def _kwh(path: Path, document: dict[Any, Any]) -> float | None:
    return _price(path, "kwh", document["kwh"]) if "kwh" in document else None


def _by_model(path: Path, entries: object) -> dict[str, float]:
    if not isinstance(entries, dict) or not entries:
        raise UserError(f"{path}: gpu_hour must hold a price for each model, such as 'NVIDIA H200: 3.50'")
    return {str(model): _price(path, str(model), entry) for model, entry in entries.items()}


def _price(path: Path, model: str, entry: object) -> float:
    if not isinstance(entry, str) or not _PRICE.fullmatch(entry):
        raise UserError(f"{path}: the price of {model!r} must be a number without a sign, such as 3.50")
    return float(entry)


prices = ValueParser("PATH", _prices)


def _node_share(text: str) -> NodeShare:
    found = _NODE_SHARE.fullmatch(text)
    if found and found[2] and 0 < float(found[1]) <= 100:
        return NodeShare(part=float(found[1]) / 100)
    if found and not found[2] and found[1].isdecimal() and int(found[1]):
        return NodeShare(number=int(found[1]))
    raise UserError(f"{text!r} is no number of nodes; write one from 1 on, or a part of them such as 5%")


node_share = ValueParser("NODES", _node_share)


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    name: str | None = CLUSTER.optional(
        "--cluster.name",
        help="Name of the cluster, shown on its page and in its documents.",
        parse=str,
    )
    agents: tuple[str, ...] = CLUSTER.repeatable(
        "--cluster.agents",
        help="Addresses of agents to read, in place of those that the API server knows; may be repeated.",
        parse=base_address,
        default_note="found through the API server",
    )
    upstreams: tuple[tuple[str, str], ...] = CLUSTER.repeatable(
        "--cluster.upstreams",
        help="Other clusters to show side by side: the name of each and the address of its `podgpu cluster`; may be "
        "repeated.",
        parse=named_address,
    )
    contexts: tuple[tuple[str, str], ...] = CLUSTER.repeatable(
        "--cluster.contexts",
        help="Contexts of the kubeconfig to read side by side, each as CONTEXT or NAME=CONTEXT; may be repeated.",
        parse=named,
        value_name="NAME=CONTEXT",
    )
    selector: str = CLUSTER.single(
        "--cluster.selector",
        help="Labels of the agents' pods.",
        parse=str,
        value_name="SELECTOR",
        default="app.kubernetes.io/name=podgpu,app.kubernetes.io/component=agent",
    )
    namespace: str = CLUSTER.single(
        "--cluster.namespace",
        help="The namespace of the agents' DaemonSet. A pod elsewhere is no agent, whatever its labels are.",
        parse=str,
        default="podgpu",
    )
    daemonset: str = CLUSTER.single(
        "--cluster.daemonset",
        help="The DaemonSet that runs the agents. A pod that it does not run is no agent, whatever its labels are.",
        parse=str,
        default="podgpu",
    )
    port: int = CLUSTER.single(
        "--cluster.port-number",  # Kubernetes sets …_PORT for a Service of that name
        help="The agents' port, where their pods have none with the name http.",
        parse=whole(1, 65535),
        value_name="PORT",
        default="19400",
    )
    via: str = CLUSTER.single(
        "--cluster.via",
        help="How to reach pods: at their own addresses (direct), through the API server (proxy), or, with auto, "
        "directly from within the cluster and through the API server from elsewhere.",
        parse=OneOf(("auto", "direct", "proxy")),
        default="auto",
    )
    scheme: str = CLUSTER.single(
        "--cluster.scheme",
        help="How the agents that the API server knows are served: https where they have a web configuration file "
        "with a certificate.",
        parse=OneOf(("http", "https")),
        default="http",
    )
    interval: float = CLUSTER.single(
        "--cluster.interval",
        help="Time between two readings of every node, from 1s to 10m.",
        parse=duration("1s", "10m"),
        default="15s",
    )
    timeout: float = CLUSTER.single(
        "--cluster.timeout",
        help="How long a node may take to answer, from 100ms to 1m.",
        parse=duration("100ms", "1m"),
        default="5s",
    )
    remember: float = CLUSTER.single(
        "--cluster.remember",
        help="How long what a dark node last said is kept and shown, with its age, from 1m to 168h. After that, only "
        "its name and since when it is dark.",
        parse=duration("1m", "168h"),
        default="24h",
    )
    dark_critical: NodeShare = CLUSTER.single(
        "--cluster.dark-critical",
        help="From how many dark nodes on they are critical, as a number or as a part of all that should be read; "
        "fewer are a warning.",
        parse=node_share,
        default="5%",
    )


@dataclass(frozen=True, kw_only=True)
class TerminalOptions:
    url: str | None = TERMINAL.optional(
        "--url",
        help="The agent or `podgpu cluster` to read.",
        parse=base_address,
        default_note="the agent on this machine, else the cluster of the kubeconfig",
    )


@dataclass(frozen=True, kw_only=True)
class PriceOptions:
    price: Prices | None = STORE.optional(
        "--price",
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
