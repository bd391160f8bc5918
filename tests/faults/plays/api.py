"""C: what goes wrong with the API server."""

import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from podgpu.kube.object_watch import WatchTiming
from tests.fakeapi.certificate import certificate
from tests.fakekubelet.kubelet import POD_RESOURCES, Reply
from tests.fakekubelet.rig import given
from tests.fakenvml.fake_node import h200
from tests.faults.node import DEVICES, NAME, Node, sound_kubelet, uid_of
from tests.faults.page import Page
from tests.faults.play import Fault, Phase, Play
from tests.faults.signs import both, counted, part_down, survived

SERVER = "apiserver"
EVER = 1_000_000
FIRST = h200(0).uuid.encode()
# What `openssl ca` needs to be told to sign a certificate for another time than now.
SIGNING = """[ca]
default_ca=own
[own]
database=index.txt
serial=serial
new_certs_dir=.
default_md=sha256
policy=any
copy_extensions=copy
[any]
commonName=supplied
"""


def pod(name: str, *, uid: str = "", version: int = 1, **metadata: Any) -> dict[str, Any]:
    told = {"name": name, "namespace": "n", "uid": uid or uid_of(name), "resourceVersion": str(version)}
    return {
        "metadata": told | metadata,
        "spec": {"nodeName": NAME, "containers": [{"name": "c"}]},
        "status": {"phase": "Running"},
    }


def asks_the_server(node: Node) -> Sequence[str]:
    """The API server alone names the pods: the kubelet has no Pods API."""
    node.keep_sockets(POD_RESOURCES)
    node.api.pods = [pod("p")]
    return (f"--kube.api={node.api.url}",)


def with_a_token(node: Node) -> Sequence[str]:
    flags = asks_the_server(node)
    node.api.token = "first"
    file = node.folder / "token"
    file.write_text("first")
    return (*flags, f"--kube.token-file={file}")


def over_tls(node: Node) -> Sequence[str]:
    """The agent trusts two certificates: one of today, and one that is not valid yet."""
    asks_the_server(node)
    file, context = certificate(node.folder)
    bundle = node.folder / "bundle.pem"
    bundle.write_text(file.read_text() + _begins_later(node.folder).read_text())
    _restart(node, context)
    return (f"--kube.api={node.api.url}", f"--kube.ca-file={bundle}")


def _begins_later(folder: Path) -> Path:
    """Make a certificate that is valid from 2090 on, as today's is for a clock that is decades behind."""
    signer = folder / "later"
    signer.mkdir()
    (signer / "ca.cnf").write_text(SIGNING)
    (signer / "index.txt").touch()
    (signer / "serial").write_text("01\n")
    names = ("-subj", "/CN=api", "-addext", "subjectAltName=IP:127.0.0.1")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "key.pem")
    span = ("-startdate", "20900101000000Z", "-enddate", "20910101000000Z")
    own = ("-batch", "-notext", "-config", "ca.cnf", "-selfsign", "-keyfile", "key.pem")
    for command in (
        ("req", *key, *names, "-out", "request.pem"),
        ("ca", *own, *span, "-in", "request.pem", "-out", "later.crt"),
    ):
        subprocess.run(["openssl", *command], cwd=signer, check=True, capture_output=True)
    return signer / "later.crt"


def refuses(status: int, headers: Mapping[str, str] | None = None) -> Fault:
    """Let the server refuse every request, those of open watches too."""

    @contextmanager
    def fault(node: Node) -> Iterator[None]:
        plan = node.api.refuse(status, times=EVER, headers=headers)
        node.call(node.api.end_watches)
        yield
        plan.times = 0

    return fault


@contextmanager
def away(node: Node) -> Iterator[None]:
    node.do(node.api.stop())
    yield
    node.do(node.api.start())


def history_lost(*, in_stream: bool) -> Fault:
    """A server that was restored from a backup keeps no version that anybody knows."""

    @contextmanager
    def fault(node: Node) -> Iterator[None]:
        node.api.oldest, node.api.gone_in_stream = EVER, in_stream
        node.call(node.api.end_watches)
        yield
        node.api.oldest = 0

    return fault


@contextmanager
def silent(node: Node) -> Iterator[None]:
    """The watch stays open and says nothing, while the kubelet gives the card to another pod."""
    node.holders[h200(0).uuid].add("q")
    node.kubelet.replies = sound_kubelet() | {DEVICES: Reply(given(FIRST, pod=b"q"))}
    yield
    node.kubelet.replies = sound_kubelet()


def names(pod: str) -> Any:
    def proof(now: Page) -> bool:
        return pod in {labels["pod"] for labels, _ in now.by_name.get("podgpu_container_allocated_ratio", ())}

    return proof


@contextmanager
def token_rotated(node: Node) -> Iterator[None]:
    """The server wants a new token, and the file with it comes late."""
    node.api.token = "second"
    node.call(node.api.end_watches)
    yield
    (node.folder / "token").write_text("second")


@contextmanager
def clock_behind(node: Node) -> Iterator[None]:
    """For a clock that is behind, the server's certificate is not valid yet."""
    sound, later = node.api.tls, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    later.load_cert_chain(node.folder / "later" / "later.crt", node.folder / "later" / "key.pem")
    _restart(node, later)
    yield
    _restart(node, sound)


def _restart(node: Node, tls: ssl.SSLContext | None) -> None:
    node.do(node.api.stop())
    node.api.tls = tls
    node.do(node.api.start())


@contextmanager
def fat_pods(node: Node) -> Iterator[None]:
    """Pods with a MiB of annotations and ten thousand labels, one of them beyond what is taken."""
    labels = {f"label-{number}": "x" * 60 for number in range(10_000)}
    fat = pod("fat", version=5, annotations={"note": "x" * (1 << 20)}, labels=labels)
    endless = pod("endless", version=6, annotations={"note": "x" * (17 << 20)})
    node.api.pods = [pod("p"), fat]
    node.api.version = 5
    node.call(node.api.event, "ADDED", fat)
    node.call(node.api.event, "MODIFIED", endless)
    yield
    node.api.pods = [pod("p")]
    node.call(node.api.event, "DELETED", fat)


@contextmanager
def old_news(node: Node) -> Iterator[None]:
    """The pod is made again under its name. News about its predecessor come late, twice and in the wrong order."""
    again = pod("p", uid=uid_of("p again"), version=9)
    node.api.pods, node.api.version = [again], 9
    for kind, item in (
        ("ADDED", again),
        ("MODIFIED", pod("p", version=7)),
        ("DELETED", pod("p", version=8)),
        ("DELETED", pod("p", version=8)),
        ("ADDED", again),
        ("MODIFIED", pod("p", version=6)),
    ):
        node.call(node.api.event, kind, item)
    yield


def knows_uid(uid: str) -> Any:
    return lambda now: {labels["pod_uid"] for labels, _ in now.by_name.get("podgpu_pod_info", ())} == {uid}


PLAYS = (
    Play(
        id="C1",
        what="the API server is away",
        fault=away,
        shows=part_down(SERVER, "unreachable"),
        flags=asks_the_server,
    ),
    Play(
        id="C2",
        what="the API server asks for patience",
        fault=refuses(429, {"Retry-After": "1"}),
        shows=part_down(SERVER, "throttled"),
        flags=asks_the_server,
    ),
    Play(
        id="C3",
        what="the version to watch from is no longer kept",
        fault=history_lost(in_stream=True),
        shows=counted(SERVER, "gone"),
        flags=asks_the_server,
    ),
    Play(
        id="C3.status",
        what="the version to watch from is refused at once",
        fault=history_lost(in_stream=False),
        shows=counted(SERVER, "gone"),
        flags=asks_the_server,
    ),
    Play(
        id="C4",
        what="the watch fell silent, and nobody says that the card has another pod now",
        fault=silent,
        shows=survived(names("q")),
        flags=asks_the_server,
    ),
    Play(
        id="C4.noticed",
        what="the watch stays silent for so long that it is opened anew",
        fault=nullcontext,
        shows=counted(SERVER, "stalled"),
        flags=asks_the_server,
        patience=WatchTiming().silence + 20.0,
        left_out=dict.fromkeys((Phase.START, Phase.SCRAPE, Phase.STOP), "a minute and a half for each"),
    ),
    Play(
        id="C5",
        what="the token was rotated",
        fault=token_rotated,
        shows=part_down(SERVER, "unauthorized"),
        flags=with_a_token,
    ),
    Play(
        id="C6",
        what="the clock is behind, and the server's certificate not valid yet",
        fault=clock_behind,
        shows=part_down(SERVER, "tls"),
        flags=over_tls,
    ),
    Play(
        id="C7",
        what="the right to list pods is withdrawn",
        fault=refuses(403),
        shows=part_down(SERVER, "forbidden"),
        flags=asks_the_server,
    ),
    Play(
        id="C8",
        what="pods are larger than anybody needs, and one larger than anybody takes",
        fault=fat_pods,
        shows=both(counted(SERVER, "too_large"), survived(names("p"))),
        flags=asks_the_server,
    ),
    Play(
        id="C9",
        what="a pod is made again under its name, and old news come late",
        fault=old_news,
        shows=survived(knows_uid(uid_of("p again"))),
        flags=asks_the_server,
    ),
)
