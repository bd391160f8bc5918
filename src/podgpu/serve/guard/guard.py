"""Decides who gets an answer."""

import ssl
from collections.abc import Mapping
from pathlib import Path

from podgpu.serve import answer
from podgpu.serve.answer import Response
from podgpu.serve.guard.passwords import Passwords
from podgpu.serve.guard.rule_book import RuleBook
from podgpu.serve.guard.verdicts import Busy
from podgpu.serve.request import Request


class Guard:
    """Without any setting, everybody gets one."""

    def __init__(self, web_config: Path | None = None) -> None:
        self._book = RuleBook(web_config)
        self._passwords = Passwords()

    @property
    def context(self) -> ssl.SSLContext | None:
        """What a new connection begins with: None means plain HTTP."""
        return self._book.rules.context

    @property
    def headers(self) -> Mapping[str, str]:
        return self._book.rules.headers

    @property
    def asks_for_secrets(self) -> bool:
        return bool(self._book.rules.users)

    def look(self) -> None:
        """Take over changes of the files."""
        self._book.look()

    async def refusal(self, request: Request) -> Response | None:
        """Say why the request is not answered. None means that it is."""
        if self._book.rules.needs_certificate and not request.certified:
            return answer.text(403, "this page is only for clients that show a certificate")
        if not self.asks_for_secrets:
            return None
        try:
            return await self._refusal(request)
        except Busy:
            return answer.busy("too many logins at once; try again in a second")

    async def close(self) -> None:
        self._passwords.close()

    async def _refusal(self, request: Request) -> Response | None:
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        users, client = self._book.rules.users, request.remote or ""
        if scheme.lower() == "basic" and users and await self._passwords.right(users, shown.strip(), client):
            return None
        return answer.text(401, "log in to read this page", {"WWW-Authenticate": 'Basic realm="podgpu"'})
