"""Finds the workload of a pod, through an API server."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import msgspec
from msgspec.structs import replace

from podgpu.errors import UserError
from podgpu.kube.api import ApiAccount, ApiFault, ApiServer, checked_account, in_cluster
from podgpu.kube.pod_object import Label, PodObject, Subdomain, to_pod
from podgpu.kube.workloads import Workloads
from podgpu.model import Card, Snapshot, Tenant, Workload
from podgpu.net.login import Login

NOT_FOUND = 404
CACHE_SIZE = 4096
SMALLEST_CACHE = 16  # the owners of one pod
AT_ONCE = 8


class PodName(msgspec.Struct, frozen=True):
    """Only a valid name may become part of a path."""

    namespace: Label
    pod: Subdomain

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.pod}"


class WorkloadResolver:
    """Follows pods to their topmost owners, and remembers owners for a day. Use it with `async with`.

    Without a `url`, it asks the API server of the cluster that this process runs in. It reads `token_file` again for
    every request. If a pod has one of `name_labels`, the value of the first names its workload. With `nearest`, the
    workload is the nearest owner that Kubernetes itself knows, as zxporter has it. `cache_size` is how many owners it
    remembers.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token_file: Path | None = None,
        ca_file: Path | None = None,
        name_labels: Sequence[str] = (),
        nearest: bool = False,
        cache_size: int = CACHE_SIZE,
    ) -> None:
        account = ApiAccount(url, Login(token_file=token_file, ca_file=ca_file)) if url else in_cluster(os.environ)
        if account is None:
            raise UserError("this process has no service account of a cluster; give the API server's url")
        checked_account(account)
        self._api = ApiServer(account.url, account.login)
        if cache_size < SMALLEST_CACHE:
            raise UserError(f"cache_size is {cache_size}; choose at least {SMALLEST_CACHE}")
        self._workloads = Workloads(self._api, name_labels=name_labels, nearest=nearest, most_known=cache_size)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._workloads.close()
        await self._api.close()

    async def find(self, namespace: str, pod: str) -> Workload | None:
        """Return the workload of a pod. None if there is no such pod, or if its owners cannot be asked for now.

        The pod itself is read every time, since a new pod of the same name may have another owner. Raises ApiFault if
        it cannot be read. An owner that may not be read counts as the topmost.
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
        return (await self._workloads.resolve([found])).get(found.uid)

    async def with_workloads(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with the workload of each pod on its cards, for the rows of `gpu_metrics`.

        A pod that is gone or cannot be read has none: the numbers do not depend on the API server.
        """
        refs = {tenant.container for card in snapshot.cards for tenant in card.tenants if tenant.container.pod}
        pods = sorted({(ref.namespace, ref.pod) for ref in refs})
        turns = asyncio.Semaphore(AT_ONCE)
        found = await asyncio.gather(*(self._found(namespace, pod, turns) for namespace, pod in pods))
        known = dict(zip(pods, found, strict=True))
        return replace(snapshot, cards=tuple(_with_workloads(card, known) for card in snapshot.cards))

    async def _found(self, namespace: str, pod: str, turns: asyncio.Semaphore) -> Workload | None:
        async with turns:
            try:
                return await self.find(namespace, pod)
            except ApiFault:
                return None


def _with_workloads(card: Card, known: Mapping[tuple[str, str], Workload | None]) -> Card:
    def workload_of(tenant: Tenant) -> Workload | None:
        return known.get((tenant.container.namespace, tenant.container.pod)) or tenant.workload

    return replace(card, tenants=tuple(replace(tenant, workload=workload_of(tenant)) for tenant in card.tenants))
