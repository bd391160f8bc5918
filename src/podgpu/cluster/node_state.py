"""The state of a node, by what was read of it and what Kubernetes knows. Pure: time is an argument."""

from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from podgpu.errors import ReasonedError
from podgpu.insight.dark import last_words
from podgpu.model import ClusterNode, LastWords, Snapshot, Written
from podgpu.model.kube import only

STALE_INTERVALS = 3
STALE_SECONDS = 300.0  # what is older gives way to what Kubernetes knows; else it is kept as what was last heard
REMEMBER_SECONDS = 86400.0  # the default of --cluster.remember

# Why a node is not fresh, and what to do about it.
REASONS = {
    "starting": "It has not been read yet: wait for the first cycle.",
    "no_agent": "Nothing reads its GPUs: install the podgpu agent there, or a dcgm-exporter. If there is an agent, "
    "name its --cluster.namespace and --cluster.daemonset.",
    "unreachable": "No connection: check that the agent's pod runs, and that network policies let this one in.",
    "timeout": "No response in time: check the agent's log, or raise --cluster.timeout.",
    "unauthorized": "It does not accept the login, or there is none: give --login.token-file or --login.password-file.",
    "login": "The files of --login cannot be used: correct them; they are read again.",
    "forbidden": "The account lacks a permission: docs/cluster.md has the rules that grant it.",
    "http_error": "It answered with an error: check its log.",
    "tls": "No agreement on TLS: give its authority with --login.ca-file, and the name in its certificate with "
    "--login.server-name.",
    "too_large": "It sent more than a snapshot can contain: check what listens on its port.",
    "garbage": "It sent something that is not a snapshot: check what listens on its port.",
    "wrong_node": "It reported another node: check its --node-name. It is not shown.",
    "conflict": "Several agents report the same node, none with proof: check their --node-name. None is shown.",
    "older_schema": "Its podgpu is older than this one: upgrade the agent.",
    "newer_schema": "Its podgpu is newer than this one: upgrade podgpu cluster.",
    "no_gpu": "Its page has no GPU: check that the dcgm-exporter there sees any.",
    "blind": "Its agent answers, and sees no GPU: check the driver there, or ask the agent with podgpu doctor --url.",
    "stopped": "It answers, but takes no new readings: check its log.",
    "store_failed": "The store did not answer: check --prometheus.url; docs/report.md lists the reasons.",
    "not_scraped": "The store has no new samples of it: check whether its agent runs and is still scraped.",
    "implausible": "The store has impossible numbers for it: check its series, and what writes them.",
    "failed": "Reading it failed: check the log of podgpu cluster, and report it.",
}


class ReadFault(ReasonedError):
    """Why there is no snapshot. `reason` is in REASONS; `detail` says what happened, without what to do."""


class SnapshotReader(Protocol):
    """Reads the snapshots of a node."""

    origin: str  # one of ORIGINS
    written: Written | None  # the newest snapshot as it came, if it came as a document

    async def read(self) -> Snapshot:
        """Return the newest snapshot: the same object if nothing has changed. Raises ReadFault."""

    async def full(self) -> Snapshot:
        """Return the newest snapshot with everything in it, not just the slim form. Raises ReadFault."""

    async def close(self) -> None: ...


class ReadState(Struct, frozen=True, kw_only=True):
    """What has been read of a node so far. `seconds` is how long ago the snapshot was new, and `at` when that was."""

    origin: str = ""
    snapshot: Snapshot | None = None
    written: Written | None = None
    seconds: float = 0.0
    at: float | None = None  # seconds since 1970, by this clock: the node's own may be wrong
    fault: ReadFault | None = None


class ReadTimes(Struct, frozen=True):
    """`interval` is the time between two readings, `remember` how long the last words of a dark node are kept."""

    interval: float
    remember: float = REMEMBER_SECONDS


def node_state(name: str, read: ReadState | None, known: ClusterNode | None, times: ReadTimes) -> ClusterNode:
    """`known` is what Kubernetes knows of the node."""
    bare = known or ClusterNode(name=name, state="allocation")
    if read is None:
        return with_reason(bare, "allocation", "no_agent")
    snapshot = read.snapshot
    if snapshot is None or not is_shown(read, known, times):
        fault = read.fault or ReadFault("starting" if snapshot is None else "stopped", "")
        return replace(with_reason(bare, "failed", fault.reason, fault.detail), name=name, heard=_heard(read, times))
    shown = replace(
        bare,
        name=name,
        origin=read.origin,
        snapshot=snapshot,
        written=read.written,
        model=only(card.gpu.model for card in snapshot.cards) or bare.model,
    )
    if is_fresh(read, times.interval):
        return replace(shown, state="fresh", reason="", detail="")
    fault = read.fault or ReadFault("stopped", "")
    text = _reason_text(fault.reason, fault.detail)
    return replace(shown, state=_dark_state(read), reason=fault.reason, detail=text, heard=_heard(read, times))


def is_unchanged(node: ClusterNode, read: ReadState | None, known: ClusterNode | None, times: ReadTimes) -> bool:
    """Whether `node_state` would make the same of a node again, while Kubernetes knows the same of it."""
    if read is None:
        return False
    if read.snapshot is not None and is_fresh(read, times.interval):
        return node.state == "fresh" and read.snapshot is node.snapshot
    if read.snapshot is not None and is_shown(read, known, times):
        if node.state != _dark_state(read) or read.snapshot is not node.snapshot:
            return False
    elif node.state != "failed" or node.origin not in ("", "api"):
        return False
    fault = read.fault or ReadFault("starting" if read.snapshot is None else "stopped", "")
    if (node.reason, node.detail) != (fault.reason, _reason_text(fault.reason, fault.detail)):
        return False
    heard = node.heard
    if heard is None or read.at is None:
        return heard is None and read.at is None
    return heard.at == read.at and (heard.gpus is None) == (_remembered(read, times) is None)


def is_shown(read: ReadState, known: ClusterNode | None, times: ReadTimes) -> bool:
    """Whether its last snapshot is shown. One that Kubernetes knows better is not, after a while."""
    has_better = known is not None and known.snapshot is not None
    return read.seconds <= (min(STALE_SECONDS, times.remember) if has_better else times.remember)


def _dark_state(read: ReadState) -> str:
    return "stale" if read.seconds <= STALE_SECONDS else "failed"


def _heard(read: ReadState, times: ReadTimes) -> LastWords | None:
    if read.at is None:
        return None
    snapshot = _remembered(read, times)
    return LastWords(at=read.at) if snapshot is None else last_words(snapshot, read.at)


def _remembered(read: ReadState, times: ReadTimes) -> Snapshot | None:
    return read.snapshot if read.seconds <= times.remember else None


def is_fresh(read: ReadState, interval: float) -> bool:
    """Whether the snapshot is not too old, by its own interval or ours."""
    if read.snapshot is None:
        return False
    return read.seconds <= STALE_INTERVALS * max(interval, read.snapshot.interval_seconds)


def with_reason(node: ClusterNode, state: str, reason: str, detail: str = "") -> ClusterNode:
    origin = "api" if state != "stale" and node.snapshot else node.origin
    return replace(node, state=state, origin=origin, reason=reason, detail=_reason_text(reason, detail))


def _reason_text(reason: str, detail: str) -> str:
    return " ".join(filter(None, (_sentence(detail), REASONS[reason])))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""
