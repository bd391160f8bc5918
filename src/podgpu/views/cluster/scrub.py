"""Replaces the names in a cluster, for a recording or a report that leaves the organisation.

Equal names stay equal. Without the key, which is not kept, names cannot be restored or guessed.
"""

from hashlib import blake2s
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from podgpu import model
from podgpu.insight import conclude, reconclude, settings_of

DIGITS = 10
# Fields that are names, with the prefix of the new name. Other fields are kept, or scrubbed in turn.
_NAMES: dict[type[Struct], dict[str, str]] = {
    model.Cluster: {"name": "cluster"},
    model.ClusterNode: {"name": "node", "cluster": "cluster"},
    model.Snapshot: {"node": "node"},
    model.PendingPod: {"namespace": "namespace", "name": "pod", "uid": "uid", "claims": "claim", "cluster": "cluster"},
    model.ContainerRef: {"namespace": "namespace", "pod": "pod", "container": "container", "pod_uid": "uid"},
    model.OwnerReference: {"name": "workload", "uid": "uid"},
    model.Workload: {"name": "workload"},
    model.PodContainer: {"name": "container", "container_id": "id"},
    model.ExtendedUse: {"container": "container"},
    model.Pod: {
        "namespace": "namespace",
        "name": "pod",
        "uid": "uid",
        "static_hash": "uid",
        "node": "node",
        "submitter": "user",
        "cluster": "cluster",
    },
    model.Allocation: {"namespace": "namespace", "pod": "pod", "container": "container", "device_id": "GPU"},
    model.Owner: {"pod_uid": "uid", "container_id": "id"},
    model.Holder: {"command": "command", "title": "owner", "mps": "mps"},
    model.Gpu: {"uuid": "GPU"},
    model.MigInstance: {"uuid": "MIG"},
    model.UnplacedHolding: {"device_id": "GPU"},
    model.Claim: {"gpu": "GPU", "mig": "MIG", "device_id": "GPU", "ruled_out": "GPU"},
    model.Tenant: {"mig": "MIG"},
    model.Process: {"mig": "MIG"},
    model.VirtualGpu: {"pod_uid": "uid", "container": "container", "gpu": "GPU"},
}
# Fields of free text, or of no use without the names.
_DROPPED: dict[type[Struct], dict[str, Any]] = {
    model.Cluster: {"insight": None},
    model.ClusterNode: {"detail": "", "address": "", "written": None, "insight": None},
    model.LastWords: {"pods": (), "more_pods": 0, "problems": ()},
    model.PendingPod: {"reason": ""},
    model.Waiting: {"reason": ""},
    model.Snapshot: {"address": "", "insight": None},
    model.Pod: {
        "labels": {},
        "annotations": {},
        "scheduler": "",
        "resource_claims": {},
        "extended_claim": "",
        "host_ip": "",
    },
    model.PodContainer: {"devices": (), "uses": (), "image": "", "cgroup": ""},
    model.Holder: {"cgroup": "", "user": None},
    model.Fault: {"detail": ""},
    model.Gpu: {"pci_bus_id": "", "serial": None},
    model.GuestCard: {"pci_bus_id": ""},
    model.SharingStatus: {"doubts": ()},
    model.Excused: {"proof": ""},
}


class Scrubber:
    def __init__(self, key: bytes) -> None:
        self._key = key

    def scrubbed(self, cluster: model.Cluster) -> model.Cluster:
        """The insight has names in its sentences, so it is computed again."""
        renamed: model.Cluster = self._of(cluster)
        return reconclude(renamed, settings_of(cluster.insight)) if cluster.insight else renamed

    def scrubbed_node(self, snapshot: model.Snapshot) -> model.Snapshot:
        renamed: model.Snapshot = self._of(snapshot)
        return conclude(renamed, settings_of(snapshot.insight)) if snapshot.insight else renamed

    def _of(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple([self._of(item) for item in value])
        if not isinstance(value, Struct):
            return value
        names, dropped = _NAMES.get(type(value), {}), _DROPPED.get(type(value), {})
        changed: dict[str, Any] = {**dropped}
        for field in value.__struct_fields__:
            if field not in dropped:
                old = getattr(value, field)
                new = self._renamed(old, names[field]) if field in names else self._of(old)
                if new is not old:
                    changed[field] = new
        if isinstance(value, model.ClusterNode) and value.cluster:  # its name is `cluster/name`
            changed["name"] = f"{changed['cluster']}/{self._renamed(value.bare_name, 'node')}"
        return replace(value, **changed) if changed else value

    def _renamed(self, name: Any, prefix: str) -> Any:
        if isinstance(name, tuple):
            return tuple([self._renamed(item, prefix) for item in name])
        if not name:
            return name
        return f"{prefix}-{blake2s(name.encode(errors='replace'), key=self._key).hexdigest()[:DIGITS]}"
