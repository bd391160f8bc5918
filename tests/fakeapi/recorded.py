"""The recorded cluster, and pods made after its example."""

import copy
import json
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parents[1] / "recorded"
NODE = "gpu-node-1"


def listed(cluster: str = "kubernetes-1.36.4", name: str = "api-pods-list.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDED / cluster / name).read_bytes())
    return found


def watch_lines() -> list[bytes]:
    return (RECORDED / "kubernetes-1.36.4" / "api-pods-watch.ndjson").read_bytes().splitlines(keepends=True)


def owners() -> dict[str, Any]:
    """Return the recorded ReplicaSets and Jobs by the path they are read at."""
    found = {}
    for group, plural in (("apps", "replicasets"), ("batch", "jobs")):
        for item in listed(name=f"api-{plural}.json")["items"]:
            place = f"namespaces/{item['metadata']['namespace']}/{plural}/{item['metadata']['name']}"
            found[f"/apis/{group}/v1/{place}"] = item
    return found


def dynamic_resources(version: str = "v1", cluster: str = "kubernetes-1.36.4-dra") -> dict[str, Any]:
    """Return the recorded ResourceClaims, and the list of ResourceSlices, by the path they are read at."""
    root = f"/apis/resource.k8s.io/{version}"
    found = {f"{root}/resourceslices": listed(cluster, "api-resourceslices.json")}
    for item in listed(cluster, "api-resourceclaims.json")["items"]:
        place = f"namespaces/{item['metadata']['namespace']}/resourceclaims/{item['metadata']['name']}"
        found[f"{root}/{place}"] = item
    return found


def pod(name: str, uid: str, version: int = 1) -> dict[str, Any]:
    """Make a small pod that runs on the node."""
    return {
        "metadata": {"name": name, "namespace": "team-a", "uid": uid, "resourceVersion": str(version)},
        "spec": {"nodeName": NODE},
        "status": {"phase": "Running"},
    }


def changed(item: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    other = copy.deepcopy(item)
    other["metadata"].update(metadata)
    return other
