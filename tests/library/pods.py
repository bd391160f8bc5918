"""The recorded pods, each at the path it is read at."""

from typing import Any

from tests.fakeapi.recorded import listed


def pods() -> dict[str, Any]:
    return {
        f"/api/v1/namespaces/{item['metadata']['namespace']}/pods/{item['metadata']['name']}": item
        for item in listed()["items"]
    }
