"""What an operator types: kubectl and helm, beside the cluster that KUBECONFIG names."""

import json
from collections.abc import Mapping
from typing import Any

from tests.kubernetes.cluster.programs import run
from tools.chart import CHART

Object = dict[str, Any]
NAMESPACE = "podgpu"
_LABEL, _COMPONENT = "app.kubernetes.io/name=podgpu", "app.kubernetes.io/component"


def kubectl(*words: str, stdin: str | None = None) -> str:
    return run("kubectl", *words, stdin=stdin)


def get(kind: str, *words: str) -> list[Object]:
    found: list[Object] = json.loads(kubectl("get", kind, *words, "--output=json"))["items"]
    return found


def apply(*objects: Object) -> str:
    """What kubectl says to it: a line for each object."""
    items = {"apiVersion": "v1", "kind": "List", "items": objects}
    return kubectl("apply", "--filename=-", stdin=json.dumps(items)) if objects else ""


def make_namespace(name: str, level: str = "") -> None:
    labels = {"pod-security.kubernetes.io/enforce": level} if level else {}
    apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})


def install(values: Mapping[str, Any], *words: str, namespace: str = NAMESPACE) -> str:
    place = ["podgpu", str(CHART), f"--namespace={namespace}", "--values=-", *words]
    return run("helm", "upgrade", "--install", *place, stdin=json.dumps(dict(values)))


def uninstall(namespace: str = NAMESPACE) -> None:
    run("helm", "uninstall", "podgpu", f"--namespace={namespace}", "--wait", "--ignore-not-found")


def roll_out(namespace: str = NAMESPACE) -> Object:
    """Wait until every agent is ready, and return the pod of the only one."""
    kubectl("rollout", "status", "daemonset/podgpu", f"--namespace={namespace}", "--timeout=90s")
    (pod,) = [each for each in agents(namespace) if "deletionTimestamp" not in each["metadata"]]
    return pod


def agents(namespace: str = NAMESPACE) -> list[Object]:
    return get("pods", f"--namespace={namespace}", f"--selector={_LABEL},{_COMPONENT}=agent")


def roll_out_cluster(namespace: str = NAMESPACE) -> Object:
    """Wait until the view of the cluster is ready, and return its pod."""
    kubectl("rollout", "status", "deployment/podgpu-cluster", f"--namespace={namespace}", "--timeout=90s")
    (pod,) = get("pods", f"--namespace={namespace}", f"--selector={_LABEL},{_COMPONENT}=cluster")
    return pod


def page(pod: Object, path: str, *, port: int = 19400, scheme: str = "http") -> str:
    """Read a page of a pod through the API server, which reaches it by the pod's address."""
    where = pod["metadata"]
    name = f"{scheme}:{where['name']}:{port}"
    return kubectl("get", "--raw", f"/api/v1/namespaces/{where['namespace']}/pods/{name}/proxy{path}")


def remains() -> list[str]:
    """Every object that carries podgpu's label, of any kind, anywhere."""
    kinds = kubectl("api-resources", "--verbs=list", "--output=name").split()
    names = kubectl("get", ",".join(kinds), "--all-namespaces", f"--selector={_LABEL}", "--output=name")
    return names.split()
