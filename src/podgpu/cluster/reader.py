"""Who reads a node's GPUs, and why a reading gave nothing."""

from typing import Protocol

from podgpu.model import Snapshot, Written

# Why a node is not fresh, and what to do about it.
REASONS = {
    "starting": "It has not been read yet: wait for the first round.",
    "no_agent": "Nobody reads its GPUs: install the podgpu agent there, or a dcgm-exporter. If there is an agent, name "
    "its --cluster.namespace and --cluster.daemonset.",
    "unreachable": "No connection: check that the agent's pod runs, and that network policies let this one in.",
    "timeout": "No answer in time: look at the agent's log, or give it longer with --cluster.timeout.",
    "unauthorized": "It does not accept the login, or there is none: give --login.token-file or --login.password-file.",
    "login": "The files of --login cannot be used: mend them; they are read again.",
    "forbidden": "The account lacks a right: docs/cluster.md has the rules that give it.",
    "http_error": "It answered with an error: look at its log.",
    "tls": "No agreement on TLS: give its authority with --login.ca-file, and the name in its certificate with "
    "--login.server-name.",
    "too_large": "It sent more than a snapshot can have: check what listens on its port.",
    "garbage": "It sent something that is no snapshot: check what listens on its port.",
    "wrong_node": "It reported another node: check its --node-name. Nothing of it is shown.",
    "conflict": "Several agents report one node, none with proof: check their --node-name. Nothing of them is shown.",
    "older_schema": "Its podgpu is older than this one: upgrade the agent.",
    "newer_schema": "Its podgpu is newer than this one: upgrade podgpu cluster.",
    "no_gpu": "Its page has no GPU: check that the dcgm-exporter there sees any.",
    "stopped": "It answers, but takes no new readings: look at its log.",
    "store_failed": "The store gave no answer: check --prometheus.url; docs/report.md lists the reasons.",
    "not_scraped": "The store has no new samples of it: check whether its agent runs and is still scraped.",
    "implausible": "The store has numbers of it that no node can have: look at its series, and at who writes them.",
    "failed": "Reading it failed: look at the log of podgpu cluster, and report it.",
}


class ReadFault(Exception):
    """Why there is no snapshot. `reason` is in REASONS; `detail` says what happened, without what to do."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


class Reader(Protocol):
    """Reads one node, again and again."""

    @property
    def origin(self) -> str:
        """One of ORIGINS."""

    @property
    def written(self) -> Written | None:
        """The newest snapshot as it came, if it came as a document."""

    async def read(self) -> Snapshot:
        """Return the newest snapshot: the same object if nothing has changed. Raises ReadFault."""

    async def full(self) -> Snapshot:
        """Return the newest snapshot with everything in it, not just the slim form. Raises ReadFault."""

    async def close(self) -> None: ...
