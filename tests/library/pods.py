"""The recorded pods, each at the path it is read at, and the pod of the recorded page."""

from typing import Any

from tests.fakeapi.recorded import listed


def pods() -> dict[str, Any]:
    alone = {
        "metadata": {"name": "gpu-test", "namespace": "default", "uid": "1"},
        "spec": {},
        "status": {"phase": "Running"},
    }
    return {"/api/v1/namespaces/default/pods/gpu-test": alone} | {
        f"/api/v1/namespaces/{item['metadata']['namespace']}/pods/{item['metadata']['name']}": item
        for item in listed()["items"]
    }
