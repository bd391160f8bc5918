"""values.schema.json: the shape of values.yaml, with podgpu's own options below `config`."""

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import yaml

from podgpu.cli import cluster, report
from podgpu.cli._output import FORMATS
from podgpu.config import OPTIONS
from podgpu.config.precedence import spellings
from podgpu.option import NOT_AN_AGENTS
from podgpu.serve.guard.web_config import SUITES
from podgpu.views.dialects import dialect_names
from tools.chart import CHART, option_schema

PATH = CHART / "values.schema.json"
Schema = dict[str, Any]

_PORT: Schema = {"type": "integer", "minimum": 1, "maximum": 65535}
_PORT_OR_NONE: Schema = {"type": "integer", "minimum": 0, "maximum": 65535}
_FOLDER: Schema = {"type": "string", "pattern": "^/"}
_FREE: Schema = {"type": "object"}
_LISTENER: Schema = {
    "type": "object",
    "additionalProperties": False,
    "required": ["port", "dialect"],
    "properties": {
        "port": _PORT,
        "dialect": {"enum": ["native", *dialect_names()]},
        "hostPort": _PORT,
        "scrape": {"type": "boolean"},
        "name": {"type": "string", "pattern": "^[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?$"},
    },
}
_SERVICE: Schema = {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]}
_CLUSTER_LISTENER: Schema = {
    **_LISTENER,
    "properties": {name: _LISTENER["properties"][name] for name in ("port", "dialect", "name")},
}

_TEXT: Schema = {"type": "string"}
_TLS_VERSION: Schema = {"enum": ["TLS12", "TLS13"]}
_WEB_CONFIG: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "tls_server_config": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                **dict.fromkeys(("cert_file", "key_file", "client_auth_type", "client_ca_file"), _TEXT),
                "min_version": _TLS_VERSION,
                "max_version": _TLS_VERSION,
                "cipher_suites": {"type": "array", "items": {"enum": list(SUITES)}},
            },
        },
        "http_server_config": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"headers": _FREE, "http2": {"enum": [False]}},
        },
        "basic_auth_users": {
            "type": "object",
            # Hashes of bcrypt; the agent takes costs from 4 to 16.
            "additionalProperties": {
                "type": "string",
                "pattern": r"^\$2[aby]\$(0[4-9]|1[0-6])\$[./A-Za-z0-9]{53}$",
            },
        },
    },
}

# What a default cannot show: the values a field takes, and objects that Kubernetes or another operator defines.
_REFINED: Mapping[str, Schema] = {
    "port": _PORT,
    "probePort": _PORT_OR_NONE,
    "service.port": _PORT,
    "service.type": _SERVICE,
    "cluster.port": _PORT,
    "cluster.probePort": _PORT_OR_NONE,
    "cluster.service.port": _PORT,
    "cluster.service.type": _SERVICE,
    "webConfig": _WEB_CONFIG,
    "cluster.webConfig": _WEB_CONFIG,
    "cluster.listeners": {"type": "array", "items": _CLUSTER_LISTENER},
    "cluster.podDisruptionBudget.minAvailable": {"type": ["integer", "string"]},
    "cluster.podDisruptionBudget.maxUnavailable": {"type": ["integer", "string"]},
    "cluster.ingress.path": _FOLDER,
    "cluster.ingress.pathType": {"enum": ["Prefix", "Exact", "ImplementationSpecific"]},
    "cluster.httpRoute.path": _FOLDER,
    "cluster.replicas": {"type": "integer", "minimum": 0},
    "cluster.nodeSelector": _FREE,
    "cluster.resources": _FREE,
    "report.period": {"enum": ["month", "week", "day"]},
    "report.basis": {"enum": ["held", "used", "greater", "energy"]},
    "report.share": {"enum": ["none", "held", "even"]},
    "report.coverage": {"type": "number", "minimum": 0, "maximum": 1},
    "report.nodeSelector": _FREE,
    "report.resources": _FREE,
    "fit.output": {"enum": list(FORMATS)},
    "fit.headroom": {"type": "number", "minimum": 0, "maximum": 400},
    "fit.percentile": {"type": "number", "minimum": 50, "maximum": 100},
    "fit.nodeSelector": _FREE,
    "fit.resources": _FREE,
    "kubeletPath": _FOLDER,
    "image.pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
    "image.digest": {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
    "listeners": {"type": "array", "items": _LISTENER},
    "ratioFile": {"type": ["string", "number"]},
    "stateHostPath": {"type": "string", "pattern": "^(/.+)?$"},
    "defaultRules.disabled": {"type": "object", "additionalProperties": {"type": "boolean"}},
    "global": _FREE,
    "nodeSelector": _FREE,
    "resources": _FREE,
    "updateStrategy": _FREE,
    "livenessProbe": _FREE,
    "readinessProbe": _FREE,
}
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
# The chart gives the agent its file.
_NOT_IN_FILE = "--config.file"


def _of_agent() -> list[str]:
    return [name for name, option in OPTIONS.items() if option.group not in NOT_AN_AGENTS]


def text() -> str:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    whole = _object({each: values[each] for each in values if each != "config"}, "")
    whole["properties"]["config"] = _section([_key(flag) for flag in _leaves(_of_agent())], "")
    of_cluster = _section([_key(flag) for flag in _leaves(cluster.OPTIONS)], "")
    whole["properties"]["cluster"]["properties"]["config"] = of_cluster
    of_store = _section([_key(flag) for flag in _leaves(report.OPTIONS)], "")
    for job in ("report", "fit"):
        whole["properties"][job]["properties"]["config"] = of_store
    # A chart that depends on this one switches it by this value.
    whole["properties"]["enabled"] = {"type": "boolean"}
    document = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the podgpu chart",
        **whole,
        "definitions": {
            _key(flag): leaf for flag, leaf in _leaves({*_of_agent(), *cluster.OPTIONS, *report.OPTIONS}).items()
        },
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def ranges() -> str:
    names = {*_of_agent(), *cluster.OPTIONS, *report.OPTIONS}
    return option_schema.ranges(option for option, now in spellings() if now.name in names)


def _object(values: Mapping[str, Any], above: str) -> Schema:
    properties = {name: _value(value, f"{above}{name}") for name, value in values.items()}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _value(value: object, path: str) -> Schema:
    if path in _REFINED:
        return _REFINED[path]
    if isinstance(value, dict):
        return _object(value, f"{path}.") if value else _FREE
    return {"type": _TYPES[type(value)]}


def _key(flag: str) -> str:
    return flag.removeprefix("--")


def _leaves(names: Collection[str]) -> dict[str, Schema]:
    return {
        option.flag: option_schema.of_option(option)
        for option, now in spellings()
        if option.flag != _NOT_IN_FILE and now.name in names
    }


def _section(keys: list[str], above: str) -> Schema:
    """A key can be cut at any of its dots, as in the configuration file."""
    properties = {part: _below(keys, f"{above}{part}") for part in sorted(_parts(keys, above))}
    return {"type": ["object", "null"], "additionalProperties": False, "properties": properties}


def _parts(keys: list[str], above: str) -> set[str]:
    return {part for key in keys for part in _starts(key.removeprefix(above))}


def _starts(key: str) -> Iterator[str]:
    words = key.split(".")
    return (".".join(words[:count]) for count in range(1, len(words) + 1))


def _below(keys: list[str], path: str) -> Schema:
    deeper = [key for key in keys if key.startswith(f"{path}.")]
    if not deeper:
        return {"$ref": f"#/definitions/{path}"}
    section = _section(deeper, f"{path}.")
    return {"anyOf": [{"$ref": f"#/definitions/{path}"}, section]} if path in keys else section
