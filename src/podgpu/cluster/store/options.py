"""Where the store is, and how to log in there."""

import re
from dataclasses import dataclass
from pathlib import Path

from podgpu.errors import UserError
from podgpu.option import STORE
from podgpu.option.file import existing_file
from podgpu.option.value import bare_address, duration

_MATCHER = r'[a-zA-Z_][a-zA-Z0-9_]*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\]|\\.)*"'
_MATCHERS = re.compile(rf"{_MATCHER}(?:\s*,\s*{_MATCHER})*")


def matchers(text: str) -> str:
    """Take label matchers as PromQL writes them, with or without braces."""
    inside = text.strip().removeprefix("{").removesuffix("}").strip()
    if not _MATCHERS.fullmatch(inside):
        raise UserError(f"""{text!r} is not a list of label matchers; write it like cluster="prod",job="podgpu\"""")
    return inside


def store_address(text: str) -> str:
    """Parse a URL that /api/v1/query is added to."""
    wanted = "the address of a store; write it like http://127.0.0.1:9090"
    return bare_address(text, wanted, "--prometheus.password-file").removesuffix("/api/v1")


@dataclass(frozen=True, kw_only=True)
class StoreOptions:
    url: str | None = STORE.optional(
        "--prometheus.url",
        help="Prometheus, or a store that answers like it: Thanos, VictoriaMetrics, Mimir. With a path, such as "
        "/prometheus, if it has one.",
        parse=store_address,
        value_name="URL",
    )
    selector: str | None = STORE.optional(
        "--prometheus.selector",
        help='Which of the store\'s series to read, where it has those of other clusters too, such as cluster="prod".',
        parse=matchers,
        value_name="MATCHERS",
        default_note="all",
    )
    jobs: tuple[str, ...] = STORE.repeatable(
        "--prometheus.job",
        help="The scrape job of podgpu's agents, such as podgpu/podgpu, which is that of the chart's PodMonitor. What "
        "other jobs say of nodes is not believed. May be repeated.",
        parse=str,
        value_name="JOB",
        default_note="whichever has GPUs; a node that two targets speak for is disputed",
    )
    token_file: Path | None = STORE.optional(
        "--prometheus.token-file",
        help="File with a bearer token for the store; read again for every request.",
        parse=existing_file,
    )
    password_file: Path | None = STORE.optional(
        "--prometheus.password-file",
        help="File with USER:PASSWORD for the store; read again for every request.",
        parse=existing_file,
    )
    ca_file: Path | None = STORE.optional(
        "--prometheus.ca-file",
        help="Certificate authority of the store.",
        parse=existing_file,
        default_note="the system's",
    )
    headers_file: Path | None = STORE.optional(
        "--prometheus.headers-file",
        help="File with more headers for the store, a line for each, such as 'X-Scope-OrgID: team-a' for Mimir.",
        parse=existing_file,
    )
    timeout: float = STORE.single(
        "--prometheus.timeout",
        help="How long the store may take for an answer, from 1s to 10m.",
        parse=duration("1s", "10m"),
        default="30s",
    )
