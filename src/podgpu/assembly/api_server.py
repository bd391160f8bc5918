"""Opens the API server: by the cluster's own service account, by the options, by kubectl or by a kubeconfig.

Outside a cluster that is the user's own kubectl: what works for kubectl works here, with the same login. podgpu reads a
kubeconfig itself only where there is no kubectl.
"""

from collections.abc import Mapping
from pathlib import Path

from podgpu.assembly import machine
from podgpu.config import OPTIONS, Config
from podgpu.errors import UserError
from podgpu.kube.api import CONNECTIONS, ApiAccount, ApiServer, checked_account, in_cluster
from podgpu.net.login import ClientCertificate, Login

_FILES = ("kube_token_file", "kube_ca_file", "kube_client_cert_file", "kube_client_key_file")
_NO_ACCESS = (
    "there is no kubectl and no kubeconfig; install kubectl, or give --kube.kubeconfig, or --kube.api=URL, "
    "or addresses with --cluster.agents or --url"
)


def open_api_server(config: Config) -> ApiServer | None:
    """Open the API server for an agent. Return None if there is none, or if it is off."""
    account = chosen_account(config, machine.environment())
    return ApiServer(account.url, account.login) if account else None


def open_cluster_api(config: Config, *, connections: int = CONNECTIONS) -> ApiServer:
    """Open the API server for a command that reads a whole cluster. `connections` may be open at a time.

    If there is no access, `check_access` or the first request says so.
    """
    _check_options(config)
    if config.kube_api == "off":
        raise UserError("--kube.api=off leaves no API server to ask about the cluster; leave it out")
    uses_kubeconfig = config.kube_api == "auto" and (config.kube_kubeconfig or config.kube_context)
    account = None if uses_kubeconfig else chosen_account(config, machine.environment())
    if account is None and (program := machine.program("kubectl")):
        from podgpu.kube.api.kubeconfig import KubectlApi

        return KubectlApi(
            program, kubeconfig=config.kube_kubeconfig, context=config.kube_context or "", connections=connections
        )
    account = account or _kubeconfig_account(config)
    return ApiServer(account.url, account.login, connections=connections)


async def check_access(api: ApiServer) -> None:
    """Raise a UserError if kubectl gives no access to a cluster."""
    from podgpu.kube.api.kubeconfig import KubectlApi

    if isinstance(api, KubectlApi):
        await api.check()


def chosen_account(config: Config, environ: Mapping[str, str]) -> ApiAccount | None:
    """Return None if no API server is to be asked."""
    _check_options(config)
    if config.kube_context and not config.kube_kubeconfig:
        raise UserError("--kube.context chooses within a kubeconfig; give its path with --kube.kubeconfig")
    if config.kube_api == "off":
        return None
    if config.kube_kubeconfig:
        from podgpu.kube.api.kubeconfig import account

        return checked_account(account(config.kube_kubeconfig, config.kube_context or ""))
    if config.kube_api == "auto":
        return in_cluster(environ)
    client = None
    if config.kube_client_cert_file and config.kube_client_key_file:
        client = ClientCertificate(cert=config.kube_client_cert_file, key=config.kube_client_key_file)
    login = Login(token_file=config.kube_token_file, ca_file=config.kube_ca_file, client=client)
    return checked_account(ApiAccount(config.kube_api, login))


def _check_options(config: Config) -> None:
    """Refuse options that contradict each other, or would be ignored."""
    has_url = config.kube_api not in ("auto", "off")
    if config.kube_kubeconfig and has_url:
        raise UserError("--kube.kubeconfig and --kube.api=URL both name an API server; leave one out")
    for name in _FILES:
        if getattr(config, name) and not has_url:
            flag = OPTIONS[name].flag
            raise UserError(f"{flag} goes with --kube.api=URL; give the API server's address too")
    if bool(config.kube_client_cert_file) != bool(config.kube_client_key_file):
        raise UserError("--kube.client-cert-file and --kube.client-key-file go together; give both or none")


def _kubeconfig_account(config: Config) -> ApiAccount:
    from podgpu.kube.api.kubeconfig import account

    path = config.kube_kubeconfig or _default_kubeconfig()
    if path is None:
        raise UserError(_NO_ACCESS)
    try:
        return checked_account(account(path, config.kube_context or ""))
    except UserError as error:
        raise UserError(f"{error}; or install kubectl, which may be able to do it") from None


def _default_kubeconfig() -> Path | None:
    """Return the kubeconfig that kubectl would take, if it is one file."""
    named = machine.environment().get("KUBECONFIG", "")
    path = Path(named) if named else machine.home() / ".kube/config"
    return path if path.is_file() else None
