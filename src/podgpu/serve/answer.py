"""Answers other than pages, and the headers that every answer carries."""

from aiohttp import web

HEADERS = {
    # Live numbers: a cached page would be a wrong one.
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Server": "podgpu",
}
TEXT = "text/plain; charset=utf-8"
RETRY_SECONDS = "1"


def text(status: int, line: str, **headers: str) -> web.Response:
    return body(status, f"{line}\n".encode(), TEXT, **headers)


def body(status: int, content: bytes, content_type: str, **headers: str) -> web.Response:
    """Header names are given with underscores: `Retry_After`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.Response(
        status=status, body=content, headers={**HEADERS, "Content-Type": content_type, **named}
    )


def busy(line: str) -> web.Response:
    return text(503, line, Retry_After=RETRY_SECONDS)


def raw(status: str, line: str) -> bytes:
    """Spell out a whole answer, for a connection that is closed before it may ask."""
    head = {**HEADERS, "Content-Type": TEXT, "Content-Length": str(len(line) + 1), "Connection": "close"}
    if status.startswith("503"):
        head["Retry-After"] = RETRY_SECONDS
    fields = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    return f"HTTP/1.1 {status}\r\n{fields}\r\n{line}\n".encode()
