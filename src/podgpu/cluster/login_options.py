"""By what to log in to agents, and to a `podgpu cluster`."""

from dataclasses import dataclass
from pathlib import Path

from podgpu.option import CLUSTER, optional
from podgpu.option.file import existing_file


@dataclass(frozen=True, kw_only=True)
class LoginOptions:
    token_file: Path | None = optional(
        "--login.token-file",
        group=CLUSTER,
        help="File with a bearer token for agents, or for the server at --url; read again when it changes.",
        parse=existing_file,
    )
    password_file: Path | None = optional(
        "--login.password-file",
        group=CLUSTER,
        help="File with USER:PASSWORD for agents, or for the server at --url; read again when it changes.",
        parse=existing_file,
    )
    ca_file: Path | None = optional(
        "--login.ca-file",
        group=CLUSTER,
        help="Certificate authority of agents, or of the server at --url; read again when it changes.",
        parse=existing_file,
        default_note="the system's",
    )
    server_name: str | None = optional(
        "--login.server-name",
        group=CLUSTER,
        help="Name in the certificate of agents, or of the server at --url, where it is not the address: pods have "
        "changing addresses, so the agents of a DaemonSet share a certificate with one name.",
        parse=str,
        value_name="NAME",
        default_note="the address",
    )
    client_cert_file: Path | None = optional(
        "--login.client-cert-file",
        group=CLUSTER,
        help="Certificate to show to agents, or to the server at --url; read again when it changes.",
        parse=existing_file,
    )
    client_key_file: Path | None = optional(
        "--login.client-key-file",
        group=CLUSTER,
        help="The key of that certificate, without a password.",
        parse=existing_file,
    )
