"""The options of commands that look at a running agent, at a cluster or at a recording."""

from dataclasses import dataclass
from pathlib import Path

from podgpu.option import TERMINAL, Option, at_most_one
from podgpu.option.file import existing_file
from podgpu.option.value import base_address


@dataclass(frozen=True, kw_only=True)
class Terminal:
    url: str | None = at_most_one(
        Option(
            flag="--url",
            group=TERMINAL,
            help="The agent or `podgpu cluster` to look at.",
            parse=base_address,
            value_name="URL",
            default_note="the agent on this machine, else the cluster of the kubeconfig",
        )
    )
    login_token_file: Path | None = at_most_one(
        Option(
            flag="--login.token-file",
            group=TERMINAL,
            help="File with a bearer token for --url; read again for every request.",
            parse=existing_file,
            value_name="PATH",
            default_note="none",
        )
    )
    login_password_file: Path | None = at_most_one(
        Option(
            flag="--login.password-file",
            group=TERMINAL,
            help="File with USER:PASSWORD for --url; read again for every request.",
            parse=existing_file,
            value_name="PATH",
            default_note="none",
        )
    )
    login_ca_file: Path | None = at_most_one(
        Option(
            flag="--login.ca-file",
            group=TERMINAL,
            help="Certificate authority of the server at --url.",
            parse=existing_file,
            value_name="PATH",
            default_note="the system's",
        )
    )
    login_client_cert_file: Path | None = at_most_one(
        Option(
            flag="--login.client-cert-file",
            group=TERMINAL,
            help="Certificate to show to the server at --url.",
            parse=existing_file,
            value_name="PATH",
            default_note="none",
        )
    )
    login_client_key_file: Path | None = at_most_one(
        Option(
            flag="--login.client-key-file",
            group=TERMINAL,
            help="The key of that certificate, without a password.",
            parse=existing_file,
            value_name="PATH",
            default_note="none",
        )
    )
