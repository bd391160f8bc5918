"""etcd, the API server, the controllers and the scheduler, for callers on this machine alone."""

import json
import ssl
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.kubernetes.cluster.programs import Programs, run

NODE = "gpu-node-1"
ADDRESS = "192.168.77.1"  # of the node; nothing outside its namespace sees it
SERVICES = "10.96.0.0/16"
ETCD = "http://127.0.0.1:2379"
API = f"https://{ADDRESS}:6443"
# Who may call with which token: user and groups.
ACCOUNTS = {
    "admin": ("admin", "system:masters"),
    "controllers": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
    "kubelet": (f"system:node:{NODE}", "system:nodes"),
    "proxy": ("system:kube-proxy", ""),
}


@dataclass(frozen=True)
class ControlPlane:
    folder: Path
    programs: Programs

    def kubeconfig(self, account: str) -> Path:
        return self.folder / f"{account}.kubeconfig"

    def start(self) -> None:
        self._write_accounts()
        self._etcd()
        self.start_api_server()
        self._controllers()
        self._scheduler()

    @property
    def _authority(self) -> Path:
        return self.folder / "apiserver.crt"  # the API server makes its own, and appends who signed it

    @property
    def _key(self) -> Path:
        return self.folder / "accounts.key"

    def _write_accounts(self) -> None:
        run("openssl", "genrsa", "-out", str(self._key), "2048")
        lines = [f'{name},{user},{name},"{groups}"' for name, (user, groups) in ACCOUNTS.items()]
        (self.folder / "tokens.csv").write_text("\n".join(lines) + "\n")
        for name in ACCOUNTS:
            self.kubeconfig(name).write_text(json.dumps(self._described(name)))

    def _described(self, account: str) -> dict[str, object]:
        cluster = {"server": API, "certificate-authority": str(self._authority)}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": account, "user": {"token": account}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": account}}],
            "current-context": "test",
        }

    def _etcd(self) -> None:
        self.programs.start(
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={ETCD}",
            f"--advertise-client-urls={ETCD}",
            "--unsafe-no-fsync",
            ready=answers(f"{ETCD}/health"),
        )

    def start_api_server(self) -> None:
        self.programs.start(
            "kube-apiserver",
            f"--etcd-servers={ETCD}",
            f"--cert-dir={self.folder}",
            f"--advertise-address={ADDRESS}",
            f"--service-cluster-ip-range={SERVICES}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            "--kubelet-preferred-address-types=InternalIP",
            "--enable-admission-plugins=NodeRestriction",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._key}",
            f"--service-account-signing-key-file={self._key}",
            ready=answers(f"{API}/readyz"),
        )

    def _controllers(self) -> None:
        self.programs.start(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig('controllers')}",
            f"--root-ca-file={self._authority}",
            f"--service-account-private-key-file={self._key}",
            "--use-service-account-credentials",
            "--leader-elect=false",
            f"--cert-dir={self.folder / 'controllers'}",
            ready=answers("https://127.0.0.1:10257/healthz"),
        )

    def _scheduler(self) -> None:
        self.programs.start(
            "kube-scheduler",
            f"--kubeconfig={self.kubeconfig('scheduler')}",
            "--leader-elect=false",
            f"--cert-dir={self.folder / 'scheduler'}",
            ready=answers("https://127.0.0.1:10259/healthz"),
        )


def answers(url: str) -> Callable[[], bool]:
    """Give a question: does it answer 200? Whoever vouches for it."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def ask() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=2, context=context) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    return ask
