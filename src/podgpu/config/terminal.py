"""The options of commands that look at a running agent, at a cluster or at a recording."""

from dataclasses import dataclass

from podgpu.option import TERMINAL, optional
from podgpu.option.value import base_address


@dataclass(frozen=True, kw_only=True)
class Terminal:
    url: str | None = optional(
        "--url",
        group=TERMINAL,
        help="The agent or `podgpu cluster` to look at.",
        parse=base_address,
        default_note="the agent on this machine, else the cluster of the kubeconfig",
    )
