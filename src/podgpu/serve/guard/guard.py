"""Decides who gets an answer."""

import ssl
from collections.abc import Mapping
from pathlib import Path

from podgpu.serve import answer
from podgpu.serve.answer import Response
from podgpu.serve.guard.rule_book import RuleBook
from podgpu.serve.request import Request


class Guard:
    """Without any setting, everybody gets one."""

    def __init__(self, web_config: Path | None = None) -> None:
        self._book = RuleBook(web_config)

    @property
    def context(self) -> ssl.SSLContext | None:
        """What a new connection begins with: None means plain HTTP."""
        return self._book.rules.context

    @property
    def headers(self) -> Mapping[str, str]:
        return self._book.rules.headers

    def look(self) -> None:
        """Take over changes of the files."""
        self._book.look()

    async def refusal(self, request: Request) -> Response | None:
        """Say why the request is not answered. None means that it is."""
        if self._book.rules.needs_certificate and not request.certified:
            return answer.text(403, "this page is only for clients that show a certificate")
        return None
