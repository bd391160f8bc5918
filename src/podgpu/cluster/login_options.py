"""How to log in to agents, and to a `podgpu cluster`."""

from dataclasses import dataclass
from pathlib import Path

from podgpu.option import CLUSTER
from podgpu.option.file import existing_file


@dataclass(frozen=True, kw_only=True)
class LoginOptions:
    token_file: Path | None = CLUSTER.optional(
        "--login.token-file",
        help="File with a bearer token for agents, or for the server at --url; read again when it changes.",
        parse=existing_file,
    )
    password_file: Path | None = CLUSTER.optional(
        "--login.password-file",
        help="File with USER:PASSWORD for agents, or for the server at --url; read again when it changes.",
        parse=existing_file,
    )
    ca_file: Path | None = CLUSTER.optional(
        "--login.ca-file",
        help="Certificate authority of agents, or of the server at --url; read again when it changes.",
        parse=existing_file,
        default_note="the system's",
    )
    server_name: str | None = CLUSTER.optional(
        "--login.server-name",
        help="Name in the certificate of agents, or of the server at --url, where it is not the address: pods have "
        "changing addresses, so the agents of a DaemonSet share a certificate with one name.",
        parse=str,
        default_note="the address",
    )
    client_cert_file: Path | None = CLUSTER.optional(
        "--login.client-cert-file",
        help="Certificate to show to agents, or to the server at --url; read again when it changes.",
        parse=existing_file,
    )
    client_key_file: Path | None = CLUSTER.optional(
        "--login.client-key-file",
        help="The key of that certificate, without a password.",
        parse=existing_file,
    )
