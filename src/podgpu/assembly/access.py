"""Chooses how commands that look at a whole cluster reach its API server.

Outside a cluster that is the user's own kubectl: what works for kubectl works here, with the same login. podgpu reads a
kubeconfig itself only where there is no kubectl.
"""

from pathlib import Path

from podgpu.assembly import machine
from podgpu.assembly.account import chosen_account
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.kube.api import Api
from podgpu.kube.api.account import Account, guarded

KUBECTL = "kubectl"
VARIABLE = "KUBECONFIG"
_NEITHER = (
    "there is no kubectl and no kubeconfig; install kubectl, or give --kube.kubeconfig, or --kube.api=URL, "
    "or addresses with --cluster.agents or --url"
)


def open_access(config: Config, *, connections: int | None = None) -> Api:
    """Return the API server. What is wrong with it shows in `check`, or with the first request.

    `connections` is how many may be open at a time.
    """
    from podgpu.kube.api.server import CONNECTIONS, open_server

    most = connections or CONNECTIONS
    if config.kube_api == "off":
        raise UserError("--kube.api=off leaves nobody to ask about the cluster; leave it out")
    is_chosen = bool(config.kube_kubeconfig or config.kube_context)
    own = None if is_chosen and config.kube_api == "auto" else chosen_account(config, machine.environment())
    if own:
        return open_server(own, most)
    if program := machine.program(KUBECTL):
        from podgpu.kube.api.kubectl import Kubectl, KubectlApi

        kubectl = Kubectl(program, kubeconfig=config.kube_kubeconfig, context=config.kube_context or "")
        return KubectlApi(kubectl, connections=most)
    return open_server(_by_kubeconfig(config), most)


async def check(api: Api) -> None:
    """Raise a UserError if kubectl gives no access to a cluster."""
    from podgpu.kube.api.kubectl import KubectlApi

    if isinstance(api, KubectlApi):
        await api.check()


def _by_kubeconfig(config: Config) -> Account:
    from podgpu.kube.api.kubeconfig import account

    path = config.kube_kubeconfig or _usual()
    if path is None:
        raise UserError(_NEITHER)
    try:
        return guarded(account(path, config.kube_context or ""))
    except UserError as error:
        raise UserError(f"{error}; or install kubectl, which may be able to do it") from None


def _usual() -> Path | None:
    """Return the kubeconfig that kubectl would take, if it is one file."""
    named = machine.environment().get(VARIABLE, "")
    path = Path(named) if named else machine.home() / ".kube/config"
    return path if path.is_file() else None
