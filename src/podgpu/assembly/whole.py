"""Chooses what of a cluster's objects is needed to say who was given which GPU."""

from collections.abc import Collection

from msgspec.structs import replace

from podgpu import sharing
from podgpu.config import Config
from podgpu.kube.api import Api
from podgpu.kube.whole.reader import ClusterReader, Wanted
from podgpu.model import Pod

NODE_LABELS = "nvidia.com/"  # NVIDIA's discovery describes a node's GPUs by these
HASHES = ("pod-template-hash", "rollouts-pod-template-hash")  # stand in for an owner that cannot be read


def open_reader(config: Config, api: Api) -> ClusterReader:
    labels = config.kube_workload_labels
    return ClusterReader(api, wanted((*config.kube_pod_labels, *labels)), workload_labels=labels)


def wanted(pod_labels: Collection[str] = ()) -> Wanted:
    """`pod_labels` are kept besides those that sharing systems look at."""
    systems = sharing.systems()
    signs, shown = sharing.signs_of(systems), {*pod_labels, *HASHES}
    of_nodes = (NODE_LABELS, *sharing.node_labels_of(systems))

    def trimmed(pod: Pod) -> Pod | None:
        if pod.finished or not sharing.concerns(pod, signs):
            return None
        labels = {key: one for key, one in pod.labels.items() if key in shown or key.startswith(signs)}
        return replace(pod, labels=labels)

    return Wanted(
        pod=trimmed,
        notes=sharing.notes_of(systems),
        node_annotations=sharing.registers_of(systems),
        node_label=lambda name: name.startswith(of_nodes),
    )
