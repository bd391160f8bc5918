"""The node: containerd, the kubelet, kube-proxy and a bridge between pods."""

import json
from dataclasses import dataclass
from pathlib import Path

from tests.kubernetes.cluster import pause
from tests.kubernetes.cluster.control_plane import ADDRESS, NODE, ControlPlane, answers
from tests.kubernetes.cluster.programs import PLUGINS, Programs, run
from tools.image import build

IMAGE = build.PROJECT / "build" / "image" / f"podgpu-{build.own_architecture()}.oci.tar"
PODS = "10.244.0.0/24"
SOCKET = Path("/run/containerd/containerd.sock")
KUBELET = Path("/var/lib/kubelet")

_CONTAINERD = f"""
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause.NAME}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{PLUGINS}"
    conf_dir = "/etc/cni/net.d"
"""
_BRIDGE = {
    "cniVersion": "0.4.0",
    "name": "pods",
    "plugins": [
        {
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": True,
            "hairpinMode": True,
            "ipam": {"type": "host-local", "subnet": PODS, "routes": [{"dst": "0.0.0.0/0"}]},
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ],
}


@dataclass(frozen=True)
class Node:
    folder: Path
    programs: Programs
    plane: ControlPlane

    def start(self, *images: Path) -> None:
        self._containerd()
        for image in (pause.archive(self.folder), *images):
            run("ctr", "--namespace=k8s.io", "images", "import", str(image))
        self.start_kubelet()
        self._proxy()

    def start_kubelet(self) -> None:
        path = self.folder / "kubelet.json"
        path.write_text(json.dumps(self._kubelet()))
        self.programs.start(
            "kubelet",
            f"--config={path}",
            f"--kubeconfig={self.plane.kubeconfig('kubelet')}",
            f"--hostname-override={NODE}",
            f"--node-ip={ADDRESS}",
            ready=answers("http://127.0.0.1:10248/healthz"),
        )

    def _containerd(self) -> None:
        path = self.folder / "containerd.toml"
        path.write_text(_CONTAINERD)
        networks = Path("/etc/cni/net.d")
        networks.mkdir(parents=True)
        (networks / "10-pods.conflist").write_text(json.dumps(_BRIDGE))
        self.programs.start("containerd", f"--config={path}", ready=SOCKET.exists)

    def _kubelet(self) -> dict[str, object]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            "cgroupDriver": "cgroupfs",
            "failCgroupV1": False,
            "failSwapOn": False,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "clusterDNS": ["10.96.0.10"],  # nobody answers there
            "clusterDomain": "cluster.local",
            "evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%"},
            "imageGCHighThresholdPercent": 100,
        }

    def _proxy(self) -> None:
        self.programs.start(
            "kube-proxy",
            f"--kubeconfig={self.plane.kubeconfig('proxy')}",
            f"--hostname-override={NODE}",
            f"--cluster-cidr={PODS}",
            "--proxy-mode=iptables",
            "--conntrack-max-per-core=0",
            ready=answers("http://127.0.0.1:10256/healthz"),
        )
