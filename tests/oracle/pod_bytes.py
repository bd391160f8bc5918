"""Writes a pod of the API server in the protobuf of the kubelet's Pods API, as far as podgpu reads it."""

from copy import deepcopy
from datetime import datetime
from typing import Any

from google.protobuf.json_format import ParseDict

from podgpu.kube._gen.pods_pb2 import PodMessage

Json = dict[str, Any]


def encoded(pod: Json) -> bytes:
    """In protobuf, quantities and times are messages."""
    pod = deepcopy(pod)
    spec, status = pod["spec"], pod["status"]
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        if limits := resources.get("limits"):
            resources["limits"] = {name: {"string": str(value)} for name, value in limits.items()}
    if started := status.get("startTime"):
        status["startTime"] = {"seconds": int(datetime.fromisoformat(started).timestamp())}
    return ParseDict(pod, PodMessage(), ignore_unknown_fields=True).SerializeToString()
