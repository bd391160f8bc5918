"""Chooses the account at the API server: the cluster's own, one made of files, or that of a kubeconfig."""

from collections.abc import Mapping

from podgpu.config import OPTIONS, Config
from podgpu.errors import UserError
from podgpu.kube.api.account import Account, ClientCertificate, guarded, in_cluster

_FILES = ("kube_token_file", "kube_ca_file", "kube_client_cert_file", "kube_client_key_file")


def chosen_account(config: Config, environ: Mapping[str, str]) -> Account | None:
    """Return None if no API server is to be asked."""
    _check(config)
    if config.kube_api == "off":
        return None
    if config.kube_kubeconfig:
        from podgpu.kube.api.kubeconfig import account

        return guarded(account(config.kube_kubeconfig, config.kube_context or ""))
    if config.kube_api == "auto":
        return in_cluster(environ)
    client = None
    if config.kube_client_cert_file and config.kube_client_key_file:
        client = ClientCertificate(cert=config.kube_client_cert_file, key=config.kube_client_key_file)
    return guarded(Account(config.kube_api, config.kube_token_file, config.kube_ca_file, client=client))


def _check(config: Config) -> None:
    """Refuse options that contradict each other, or would be ignored."""
    has_url = config.kube_api not in ("auto", "off")
    if config.kube_kubeconfig and has_url:
        raise UserError("--kube.kubeconfig and --kube.api=URL both name an API server; leave one out")
    if config.kube_context and not config.kube_kubeconfig:
        raise UserError("--kube.context chooses within a kubeconfig; give its path with --kube.kubeconfig")
    for name in _FILES:
        if getattr(config, name) and not has_url:
            raise UserError(
                f"{OPTIONS[name].flag} goes with --kube.api=URL; give the API server's address too"
            )
    if bool(config.kube_client_cert_file) != bool(config.kube_client_key_file):
        raise UserError("--kube.client-cert-file and --kube.client-key-file go together; give both or none")
