"""Renders the chart with the real helm, and the sets of values that the tests go through."""

import json
import re
import subprocess
from base64 import b64decode
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from kubernetes_validate import utils
from referencing import Registry, Resource

from tools.chart import CHART, manifests

Values = Mapping[str, Any]
Object = dict[str, Any]

VERSIONS = [f"1.{minor}" for minor in range(29, 37)]
# Defined by operators; nothing at hand knows their schemas. Their golden files are reviewed.
FOREIGN = {
    "PodMonitor",
    "ServiceMonitor",
    "VMPodScrape",
    "ClusterPodMonitoring",
    "PrometheusRule",
    "VMRule",
    "Certificate",
    "HTTPRoute",
}
needs_helm = pytest.mark.skipif(manifests.helm() is None, reason="needs helm; .ci/run builds it")

_DCGM_PORT: Object = {"port": 9400, "dialect": "dcgm", "hostPort": 9400, "scrape": True}

# Each is one way to install, beyond the defaults.
MATRIX: Mapping[str, Values] = {
    "defaults": {},
    "pod-monitor": {"podMonitor": {"enabled": True, "additionalLabels": {"release": "prometheus"}}},
    "service-monitor": {"serviceMonitor": {"enabled": True}, "service": {"enabled": True}},
    "vm-pod-scrape": {"vmPodScrape": {"enabled": True, "sampleLimit": 50000}},
    "cluster-pod-monitoring": {"clusterPodMonitoring": {"enabled": True}},
    "annotations": {"scrapeAnnotations": {"enabled": True}, "podAnnotations": {"team": "gpu"}},
    "restricted": {"hostPID": False, "hostPaths": {"podResources": False}},
    "no-api": {
        "config": {"kube": {"api": False}},
        "hostPaths": {"podLogs": True, "podsApi": True},
        "networkPolicy": {"enabled": True},
    },
    "everything-mounted": {
        "hostPaths": {"podsApi": True, "podLogs": True, "hami": True, "root": True},
        "kubeletPath": "/data/kubelet/",
    },
    "hami": {"hostPaths": {"hami": True}},
    "old-ports": {
        "listeners": [_DCGM_PORT, {"port": 9401, "dialect": "pod-gpu-map"}],
        "service": {"enabled": True, "type": "NodePort"},
        "podMonitor": {"enabled": True},
        "networkPolicy": {"enabled": True, "from": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]},
    },
    "files": {
        "customMetrics": "DCGM_FI_DEV_GPU_UTIL, gauge, Use.\n",
        "ratioFile": 2,
        "config": {"dialect": {"hami": {"names": "both"}}, "series.limit": 10000000, "interval": 0.5},
    },
    "web-config": {
        "webConfig": {"tls_server_config": {"cert_file": "/tls/tls.crt", "key_file": "/tls/tls.key"}},
        "extraVolumes": [{"name": "tls", "secret": {"secretName": "podgpu-tls"}}],
        "extraVolumeMounts": [{"name": "tls", "mountPath": "/tls", "readOnly": True}],
        "podMonitor": {"enabled": True, "tlsConfig": {"insecureSkipVerify": True}},
    },
    "locked": {
        "tlsServerConfig": {"existingSecret": "podgpu-tls"},
        "webConfig": {
            "tls_server_config": {
                "client_auth_type": "RequireAndVerifyClientCert",
                "client_ca_file": "/etc/podgpu-tls/ca.crt",
            }
        },
        "config": {"web": {"kube-auth": True}},
        "rbac": {"readers": [{"kind": "ServiceAccount", "name": "prometheus", "namespace": "monitoring"}]},
        "service": {"enabled": True},
        "serviceMonitor": {
            "enabled": True,
            "tlsConfig": {
                "ca": {"secret": {"name": "podgpu-tls", "key": "ca.crt"}},
                "serverName": "podgpu",
                "cert": {"secret": {"name": "prometheus-tls", "key": "tls.crt"}},
                "keySecret": {"name": "prometheus-tls", "key": "tls.key"},
            },
            "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
        },
    },
    "watched": {
        "prometheusRule": {"enabled": True, "additionalLabels": {"release": "kube-prometheus-stack"}},
        "grafanaDashboard": {"enabled": True},
    },
    "platform": {
        "global": {"imageRegistry": "registry.example.com", "imagePullSecrets": [{"name": "pull"}]},
        "image": {"digest": f"sha256:{'0' * 64}"},
        "commonLabels": {"team": "gpu"},
        "podLabels": {"tier": "node"},
        "runtimeClassName": "nvidia",
        "priorityClassName": "gpu-agents",
        "serviceAccount": {"annotations": {"note": "x"}},
        "extraArgs": ["--log.format=json"],
        "extraEnv": [{"name": "TZ", "value": "UTC"}],
        "extraHostVolumes": [{"name": "driver", "hostPath": "/opt/driver"}],
        "extraVolumeMounts": [{"name": "driver", "mountPath": "/opt/driver", "readOnly": True}],
        "rbac": {"extraRules": [{"apiGroups": ["kubeflow.org"], "resources": ["pytorchjobs"], "verbs": ["get"]}]},
        "affinity": {"nodeAffinity": {}},
        "extraManifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-x"}}],
    },
}


def helm(*arguments: str, values: Values | None = None) -> "subprocess.CompletedProcess[str]":
    program = manifests.helm()
    assert program is not None
    given = json.dumps(dict(values or {}))
    return subprocess.run([program, *arguments, "--values=-"], input=given, capture_output=True, text=True, check=False)


def text(values: Values | None = None, *, kubernetes: str = manifests.KUBERNETES) -> str:
    place = ["--namespace=gpu", f"--kube-version={kubernetes}"]
    done = helm("template", "podgpu", str(CHART), *place, values=values)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(values: Values) -> str:
    """What helm says about values that it does not take."""
    done = helm("template", "podgpu", str(CHART), f"--kube-version={manifests.KUBERNETES}", values=values)
    assert done.returncode != 0, done.stdout
    return done.stderr


@cache
def _matrix(kind: str) -> str:
    return text(MATRIX[kind])


def objects(kind: str) -> list[Object]:
    """The objects of one row of the matrix."""
    return parse(_matrix(kind))


def parse(rendered: str) -> list[Object]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # dashboards take the other one seconds
    return [each for each in yaml.load_all(rendered, Loader=loader) if each]


def validate(found: Iterable[Object], version: str) -> None:
    """Compare each object once with what this version of Kubernetes knows, and take no field that it does not know."""
    distinct = {json.dumps(each): each for each in found if each["kind"] not in FOREIGN}
    for each in distinct.values():
        _validator(each["kind"], each["apiVersion"], version).validate(each)


@cache
def _validator(kind: str, api: str, version: str) -> Any:
    """As `kubernetes_validate.validate` makes one for each object, which takes long."""
    newest = [each for each in utils.all_versions() if utils.major_minor(each) == version][-1]
    folder = f"v{newest}-local-strict"
    group = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", api)
    schema = utils.schema_contents(f"kubernetes-json-schema/{folder}/{kind.lower()}-{group}.json", version)
    return Draft202012Validator(schema, registry=_definitions(folder))


@cache
def _definitions(folder: str) -> Any:
    contents = utils.schema_contents(f"kubernetes-json-schema/{folder}/_definitions.json", folder)
    return (Resource.from_contents(contents) @ Registry()).crawl()


def only(found: list[Object], kind: str) -> Object:
    (manifest,) = [each for each in found if each["kind"] == kind]
    return manifest


def pod(found: list[Object]) -> Object:
    return dict(only(found, "DaemonSet")["spec"]["template"]["spec"])


def agent(found: list[Object]) -> Object:
    (container,) = pod(found)["containers"]
    return dict(container)


def files_of(found: list[Object]) -> dict[str, str]:
    """The files that are mounted into the agent."""
    (mounted,) = [each for each in found if each["kind"] == "ConfigMap" and each["metadata"]["name"] == "podgpu"]
    return dict(mounted["data"])


def config(found: list[Object]) -> dict[str, Any]:
    """The agent's configuration file, as the agent reads it: every scalar is text."""
    files = files_of(found)
    return dict(yaml.load(files["podgpu.yml"], Loader=yaml.BaseLoader))  # noqa: S506 - text, lists and maps alone


def web_config(found: list[Object]) -> str:
    """The web configuration file, as the agent reads it."""
    (secret,) = [each for each in found if each["metadata"]["name"] == "podgpu-web"]
    return b64decode(secret["data"]["web-config.yml"]).decode()
