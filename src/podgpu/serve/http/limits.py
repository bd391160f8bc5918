"""How long a client may take and how much it may send."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Deadlines are checked every `sweep_seconds`, so each may be late by that much.

    `idle_seconds` outlasts the usual scrape intervals of up to a minute: a scraper keeps its connection.
    For `settle_seconds`, a connection that has sent no request yet, or does not read, is not evicted for another.
    `unread_bytes` is how much of responses may wait for clients that do not read; a page for many counts once.
    """

    head_seconds: float = 5.0
    head_bytes: int = 16 * 1024
    line_bytes: int = 8 * 1024
    header_count: int = 64
    idle_seconds: float = 75.0
    write_seconds: float = 10.0
    unread_bytes: int = 64 << 20
    settle_seconds: float = 1.0
    stop_seconds: float = 2.0
    sweep_seconds: float = 1.0


DEFAULT = Limits()
