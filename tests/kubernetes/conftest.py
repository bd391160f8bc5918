from collections.abc import Iterator

import pytest

from tests.fakenvml.fake_node import FakeNode
from tests.kubernetes import gpus, kubectl
from tests.kubernetes.cluster.programs import HOME


@pytest.fixture(scope="session")
def node() -> Iterator[FakeNode]:
    """The node's GPUs, with tenants on them."""
    with gpus.offered() as offered:
        gpus.make_tenants()
        yield offered


@pytest.fixture(scope="session")
def memory(node: FakeNode) -> dict[str, int]:
    """Bytes on a GPU by pod, as the driver reports them of the pods' own processes."""
    return gpus.put_to_work(node)


@pytest.fixture(scope="session")
def operators() -> None:
    """The kinds of the monitoring operators, as they define them."""
    for path in sorted((HOME / "crds").glob("*.yaml")):
        kubectl.kubectl("apply", "--server-side", f"--filename={path}")
    kubectl.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")


@pytest.fixture
def namespace() -> Iterator[str]:
    """podgpu's own, as docs/install.md has it made. Nothing of podgpu may be left in the cluster at the end."""
    kubectl.make_namespace(kubectl.NAMESPACE, "privileged")
    yield kubectl.NAMESPACE
    kubectl.uninstall()
    kubectl.kubectl("delete", "namespace", kubectl.NAMESPACE, "--wait", "--ignore-not-found")
    gpus.wait_for(lambda: kubectl.remains() == [])
