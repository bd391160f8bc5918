"""Finds the workload of a pod, through an API server."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import msgspec

from podgpu.errors import UserError
from podgpu.kube.api import ApiFault
from podgpu.kube.api.account import Account, guarded, in_cluster
from podgpu.kube.api.server import open_server
from podgpu.kube.pod_object import Label, PodObject, Subdomain, to_pod
from podgpu.kube.workloads import Workloads
from podgpu.model import Workload

NOT_FOUND = 404


class PodName(msgspec.Struct, frozen=True):
    """Only a valid name may become part of a path."""

    namespace: Label
    pod: Subdomain

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.pod}"


class WorkloadResolver:
    """Follows pods to their topmost owners, and remembers owners for ten minutes. Use it with `async with`.

    Without a `url`, it asks the API server of the cluster that this process runs in. It reads `token_file` again for
    every request. If a pod has one of `name_labels`, the value of the first names its workload. With `nearest`, the
    workload is the nearest owner that Kubernetes itself knows, as zxporter has it.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token_file: Path | None = None,
        ca_file: Path | None = None,
        name_labels: Sequence[str] = (),
        nearest: bool = False,
    ) -> None:
        account = Account(url, token_file, ca_file) if url else in_cluster(os.environ)
        if account is None:
            raise UserError("this process has no service account of a cluster; give the API server's url")
        self._api = open_server(guarded(account))
        self._workloads = Workloads(self._api, name_labels=name_labels, nearest=nearest)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._workloads.close()
        await self._api.close()

    async def find(self, namespace: str, pod: str) -> Workload | None:
        """Return the workload of a pod, or None if there is no such pod.

        The pod itself is read every time, since a new pod of the same name may have another owner. Raises ApiFault if
        it cannot be read. An owner that cannot be read counts as the topmost.
        """
        try:
            name = msgspec.convert({"namespace": namespace, "pod": pod}, PodName)
            found = to_pod(await self._api.get(name.path, PodObject))
        except msgspec.ValidationError:
            return None
        except ApiFault as fault:
            if fault.status == NOT_FOUND:
                return None
            raise
        return (await self._workloads.resolve([found]))[found.uid]
