"""The path of the events."""

from collections.abc import Awaitable, Callable
from typing import Any

from podgpu.serve import answer
from podgpu.serve.answer import Response
from podgpu.serve.entry.origin import origin
from podgpu.serve.events.journal import Journal
from podgpu.serve.request import Request
from podgpu.views.negotiate import gzip_accepted

PATH = "/api/v1/events"


def events(journal: Journal[Any]) -> Callable[[Request], Awaitable[Response]]:
    """Answer with a stream that goes on after the event the client saw last, if that is still known."""

    async def handler(request: Request) -> Response:
        address = origin((request.remote,)) if request.remote else ""
        if not journal.has_place(address):
            return _too_many()
        packed = gzip_accepted(request.headers.get("accept-encoding"))
        # A browser sends the header when it connects again by itself; a script can only set the query.
        last = request.headers.get("last-event-id") or request.query.get("last-event-id", "")
        headers = {"X-Accel-Buffering": "no"}  # a proxy must not hold events back
        if packed:
            headers["Content-Encoding"] = "gzip"
        stream = await journal.reader(last, address=address, packed=packed)
        if not journal.has_place(address):  # others came while the document was written
            return _too_many()
        return Response(200, b"", "text/event-stream", headers, stream=stream)

    return handler


def _too_many() -> Response:
    return answer.busy("too many event streams; ask for the document instead")
