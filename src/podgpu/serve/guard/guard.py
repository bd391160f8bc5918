"""Decides who gets an answer."""

import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path

from podgpu.serve import answer
from podgpu.serve.answer import Response
from podgpu.serve.entry.origin import origin
from podgpu.serve.guard.hosts import Hosts
from podgpu.serve.guard.passwords import Passwords
from podgpu.serve.guard.rule_book import RuleBook
from podgpu.serve.guard.tokens import Judge, Tokens, Unavailable, Verdict, allowed_as
from podgpu.serve.guard.verdicts import Busy
from podgpu.serve.request import Request


class Guard:
    """Without any setting, everybody gets one. With passwords and a `judge` of tokens, either opens the pages."""

    def __init__(
        self, web_config: Path | None = None, judge: Judge | None = None, hosts: Sequence[str] = ()
    ) -> None:
        self.hosts = Hosts(hosts)
        self._book = RuleBook(web_config)
        self._passwords = Passwords()
        self._tokens = Tokens(judge) if judge else None

    @property
    def context(self) -> ssl.SSLContext | None:
        """What a new connection begins with: None means plain HTTP."""
        return self._book.rules.context

    @property
    def headers(self) -> Mapping[str, str]:
        return self._book.rules.headers

    @property
    def asks_for_secrets(self) -> bool:
        return bool(self._book.rules.users) or self._tokens is not None

    def look(self) -> bool:
        """Take over changes of the files, and say whether there were any."""
        return self._book.look()

    async def refusal(self, request: Request) -> Response | None:
        """Say why the request is not answered. None means that it is."""
        if not self.hosts.welcomes(request.headers):
            return answer.text(421, "this server has another name; --web.allowed-hosts lists those it has")
        if self._book.rules.needs_certificate and not request.certified:
            return answer.text(403, "this page is only for clients that show a certificate")
        if not self.asks_for_secrets:
            return None
        try:
            return await self._refusal(request)
        except Busy:
            return answer.busy("too many logins at once; try again in a second")
        except Unavailable:
            return answer.busy("the token cannot be checked now; the agent's log says why")

    async def close(self) -> None:
        self._passwords.close()
        if self._tokens is not None:
            await self._tokens.close()

    async def _refusal(self, request: Request) -> Response | None:
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        users, secret = self._book.rules.users, shown.strip()
        client = origin((request.remote,)) if request.remote else ""
        match scheme.lower():
            case "basic" if users:
                right = await self._passwords.right(users, secret, client)
                return None if right else self._challenge()
            case "bearer" if self._tokens is not None and secret:
                verdict = await self._tokens.verdict(secret, request.method, request.path, client)
                return self._by(verdict, allowed_as(request.path))
            case _:
                return self._challenge()

    def _by(self, verdict: Verdict, needed: str) -> Response | None:
        if verdict is Verdict.FORBIDDEN:
            lets_it = f"a ClusterRole with {needed!a} among its nonResourceURLs lets it"
            return answer.text(403, f"this account may not read this page; {lets_it}")
        return None if verdict is Verdict.ALLOWED else self._challenge()

    def _challenge(self) -> Response:
        ways = {"Basic": self._book.rules.users, "Bearer": self._tokens}
        offered = ", ".join(f'{name} realm="podgpu"' for name, there in ways.items() if there)
        return answer.text(401, "log in to read this page", {"WWW-Authenticate": offered})
