"""G: what clients do to the server."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from html import escape
from http.client import HTTPConnection
from pathlib import Path
from ssl import create_default_context

from tests.fakeapi.certificate import certificate
from tests.fakekubelet.kubelet import Reply
from tests.fakekubelet.rig import given
from tests.faults.node import DEVICES, Node
from tests.faults.page import Page
from tests.faults.play import Phase, Play
from tests.faults.props.clients import MANY, POLITE
from tests.faults.props.tenants import CARD
from tests.faults.props.visit import Tally, Visit
from tests.faults.signs import survived
from tests.patience import PATIENCE
from tests.serve.guard.login import basic, hashed

SCRIPT = "<script>alert(1)</script>"


def only(*statuses: str, more: int = 0) -> Callable[[Tally], bool]:
    """Whether each of these answers was given, more than so often, and no other."""

    def proof(tally: Tally) -> bool:
        strange = tally.keys() - set(statuses)
        assert not strange, f"the clients met {tally}"
        return all(tally.get(status, 0) > more for status in statuses)

    return proof


def never_worse(tally: Tally) -> bool:
    """Whether the storm was answered, each time with the page or with a plea to wait."""
    assert tally.keys() <= {"200", "503"}, f"the clients met {tally}"
    return sum(tally.values()) > 500


def came_back(tally: Tally) -> bool:
    """Whether some were cut: each of them has one connection at a time."""
    return tally.get("connected", 0) > MANY


def over_tls(node: Node) -> Sequence[str]:
    cert, _ = certificate(node.folder)
    node.context = create_default_context(cafile=cert)
    file = node.folder / "web.yml"
    file.write_text(f"tls_server_config: {{cert_file: {cert}, key_file: {cert.with_name('key.pem')}}}\n")
    return [f"--web.config.file={file}"]


def with_a_login(node: Node) -> Sequence[str]:
    node.headers["Authorization"] = basic("alice:right")
    file = node.folder / "web.yml"
    file.write_text(f"basic_auth_users: {{alice: {hashed('right', 10)}}}\n")
    return [f"--web.config.file={file}"]


class Markup:
    """A pod whose name is a script."""

    def __init__(self) -> None:
        self._node: Node | None = None

    @contextmanager
    def fault(self, node: Node) -> Iterator[None]:
        self._node = node
        node.holders[CARD].add(SCRIPT)
        node.kubelet.replies[DEVICES] = Reply(given(CARD.encode(), pod=SCRIPT.encode()))
        yield
        node.kubelet.replies[DEVICES] = Reply(given(CARD.encode()))

    def is_harmless(self, now: Page) -> bool:
        """Whether the name is on the page as text, and browsers are forbidden to run what a page brings along."""
        if not now.values("podgpu_container_allocated_ratio", pod=SCRIPT) or self._node is None:
            return False
        connection = HTTPConnection("127.0.0.1", self._node.port, timeout=PATIENCE)
        with closing(connection):
            connection.request("GET", "/")
            answer = connection.getresponse()
            body, policy = answer.read().decode(), answer.headers["Content-Security-Policy"]
        assert SCRIPT not in body
        assert "default-src 'none'" in policy
        assert "unsafe-inline" not in policy
        assert answer.headers["X-Frame-Options"] == "DENY"
        return escape(SCRIPT) in body


ALIASES = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 41))


class Aliases:
    """The web configuration becomes one that stands for 2**40 words."""

    def __init__(self) -> None:
        self._node: Node | None = None

    def flags(self, node: Node) -> Sequence[str]:
        self._write(node, "http_server_config: {http2: false}\n")
        return [f"--web.config.file={self._file(node)}"]

    @contextmanager
    def fault(self, node: Node) -> Iterator[None]:
        self._node = node
        self._write(node, ALIASES)
        yield
        self._write(node, "http_server_config: {http2: false}\n")

    def is_refused(self, _: Page) -> bool:
        return self._node is not None and "*a0 is an alias" in self._node.read_log()

    def _file(self, node: Node) -> Path:
        return node.folder / "web.yml"

    def _write(self, node: Node, text: str) -> None:
        self._file(node).write_text(text)


WEB_CONFIG = Aliases()
MARKUP = Markup()
STORM, SLOW, HANDSHAKE, UNREAD = Visit("storm"), Visit("slow"), Visit("handshake"), Visit("unread")
CROWD, GUESSING, LONG, RUDE, QUERY = (
    Visit("polite"),
    Visit("guessing"),
    Visit("long"),
    Visit("rude"),
    Visit("query"),
)

PLAYS = (
    Play(
        id="G1",
        what="many scrape without a pause",
        fault=STORM.fault,
        shows=STORM.fared(never_worse),
        clients=MANY,
    ),
    Play(
        id="G2",
        what="clients send their requests by the byte",
        fault=SLOW.fault,
        shows=SLOW.fared(came_back),
        clients=2 * MANY,
    ),
    Play(
        id="G3",
        what="clients stop in the midst of a TLS handshake",
        flags=over_tls,
        fault=HANDSHAKE.fault,
        shows=HANDSHAKE.fared(came_back),
        clients=2 * MANY,
    ),
    Play(
        id="G4",
        what="clients do not read what they asked for",
        fault=UNREAD.fault,
        shows=UNREAD.fared(lambda tally: tally.get("asked", 0) > 1000),
        clients=MANY,
    ),
    Play(
        id="G5",
        what="a request's head is too long",
        fault=LONG.fault,
        shows=LONG.fared(only("431", "400")),
        clients=MANY,
    ),
    Play(
        id="G6",
        what="requests have bodies, and methods that there are not",
        fault=RUDE.fault,
        shows=RUDE.fared(only("405", "400", "body 413")),
        clients=MANY,
    ),
    Play(
        id="G7",
        what="queries have hundreds of parameters",
        fault=QUERY.fault,
        shows=QUERY.fared(only("200", more=10)),
        clients=MANY,
    ),
    Play(
        id="G8",
        what="a pod's name is a script",
        fault=MARKUP.fault,
        shows=survived(MARKUP.is_harmless),
    ),
    Play(
        id="G9",
        what="polite clients of two addresses take all connections",
        fault=CROWD.fault,
        shows=CROWD.fared(only("200", more=2 * POLITE)),
        clients=2 * POLITE,
    ),
    Play(
        id="G11",
        what="strangers at twelve addresses guess passwords",
        flags=with_a_login,
        fault=GUESSING.fault,
        shows=GUESSING.fared(only("401", "503", more=20)),
        left_out={Phase.START: "all addresses are new then, and a first login waits for its turn among them"},
        clients=MANY,
    ),
    Play(
        id="G10",
        what="the web configuration is a few lines of YAML that stand for 2**40 words",
        flags=WEB_CONFIG.flags,
        fault=WEB_CONFIG.fault,
        shows=survived(WEB_CONFIG.is_refused),
        left_out={Phase.START: "the agent does not start with such a file; tests/option/test_document.py"},
    ),
)
