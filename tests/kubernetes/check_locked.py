"""TLS and tokens on a real cluster: certificates from a Secret, accounts that the API server knows."""

import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes import kubectl
from tests.kubernetes.gpus import DRIVER, wait_for
from tests.kubernetes.kubectl import NAMESPACE, Object
from tests.serve.guard.certificates import Authority, Pair

SECRET = "podgpu-tls"
READER = {"kind": "ServiceAccount", "name": "prometheus", "namespace": "monitoring"}
pytestmark = pytest.mark.usefixtures("node", "namespace")


def keep(pair: Pair) -> None:
    """Put a certificate into the Secret, as cert-manager would."""
    files = [f"--cert={pair.cert}", f"--key={pair.key}", "--dry-run=client", "--output=json"]
    made = kubectl.kubectl("create", "secret", "tls", SECRET, f"--namespace={NAMESPACE}", *files)
    kubectl.apply(json.loads(made))


def status(pod: Object, path: str, context: ssl.SSLContext | None = None, token: str = "") -> int:
    """Ask the pod itself, at its own address."""
    scheme = "https" if context else "http"
    url = f"{scheme}://{pod['status']['podIP']}:19400{path}"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=5, context=context) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def token_of(account: str, namespace: str) -> str:
    return kubectl.kubectl("create", "token", account, f"--namespace={namespace}").strip()


@pytest.fixture
def accounts() -> dict[str, str]:
    """The tokens of one account that may read the pages and of one that may not."""
    kubectl.make_namespace("monitoring")
    for name in ("prometheus", "stranger"):
        meta = {"name": name, "namespace": "monitoring"}
        kubectl.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    return {name: token_of(name, "monitoring") for name in ("prometheus", "stranger")}


def test_accounts_are_let_in_by_their_roles(accounts: dict[str, str]) -> None:
    values: dict[str, Any] = {**DRIVER, "config": {"web.kube-auth": "on"}, "rbac": {"readers": [READER]}}
    kubectl.install(values)
    pod = kubectl.roll_out()
    assert status(pod, "/-/ready") == 200
    assert status(pod, "/metrics") == 401
    assert status(pod, "/metrics", token="nobody's") == 401
    assert status(pod, "/metrics", token=accounts["stranger"]) == 403
    assert status(pod, "/metrics", token=accounts["prometheus"]) == 200
    assert status(pod, "/api/v1/snapshot", token=accounts["prometheus"]) == 403


def test_a_renewed_certificate_is_served_without_a_restart(tmp_path: Path) -> None:
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    keep(old.sign("first"))
    kubectl.install({**DRIVER, "tlsServerConfig": {"existingSecret": SECRET}})
    pod = kubectl.roll_out()
    assert status(pod, "/metrics", _by_address(old)) == 200
    keep(new.sign("second"))
    wait_for(lambda: _served(pod, _by_address(new)), 150.0)
    assert kubectl.roll_out()["metadata"]["name"] == pod["metadata"]["name"]


def _by_address(authority: Authority) -> ssl.SSLContext:
    """The certificate is for 127.0.0.1, and the pod has another address."""
    context = authority.client()
    context.check_hostname = False
    return context


def _served(pod: Object, context: ssl.SSLContext) -> bool:
    try:
        return status(pod, "/metrics", context) == 200
    except urllib.error.URLError:
        return False
