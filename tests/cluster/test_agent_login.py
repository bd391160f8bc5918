"""Reading agents that ask who is there: by TLS, with tokens of Kubernetes, passwords and certificates."""

import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podgpu.assembly.cluster import open_cluster
from podgpu.assembly.server import TokenReviewer
from podgpu.cluster.agent_reader import AgentReader, DirectClient, open_login
from podgpu.cluster.login_options import LoginOptions
from podgpu.cluster.node_state import ReadFault
from podgpu.config.precedence import load
from podgpu.errors import UserError
from podgpu.kube.api import ApiServer
from podgpu.kube.reviews import ACCESS, TOKENS
from podgpu.option.value import Address
from podgpu.serve.guard.guard import Guard
from tests.assembly.test_cluster import agent_pod, cluster_of
from tests.fakeapi.recorded import NODE as RECORDED_NODE
from tests.fakeapi.server import FakeApi
from tests.patience import PATIENCE, until
from tests.serve.guard.certificates import Authority, web_config
from tests.serve.guard.login import hashed
from tests.serve.rig import StubNode, make_snapshot, serving

NODE = "worker-1"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "authority")


def api_server() -> FakeApi:
    """Knows one token, whose holder may read snapshots."""

    def whose(spec: Any) -> Any:
        known = spec["token"] in ("first", "second")
        return {"authenticated": known, "user": {"username": spec["token"]} if known else {}}

    def may(spec: Any) -> Any:
        is_snapshot = spec["nonResourceAttributes"]["path"] == "/podgpu/api/v1/snapshot"
        return {"allowed": is_snapshot and spec["user"] == "first"}

    return FakeApi(reviews={TOKENS: whose, ACCESS: may})


@asynccontextmanager
async def agent(authority: Authority, folder: Path, rules: str = "", judge: Any = None) -> AsyncIterator[str]:
    file = web_config(folder, authority.sign("server"), rules)
    async with serving(StubNode(), guard=Guard(file, judge)) as server:
        yield f"https://127.0.0.1:{server.ports[0]}"


async def reason(url: str, **login: Any) -> str:
    """Why the agent cannot be read, and nothing if it can."""
    client = DirectClient(timeout=PATIENCE, login=open_login(LoginOptions(**login), [url]))
    try:
        assert (await AgentReader(client, url, NODE).read()).node == NODE
    except ReadFault as fault:
        return fault.reason
    finally:
        await client.close()
    return ""


async def test_a_token_of_kubernetes_opens_an_agent_and_a_new_one_is_taken_from_the_file(
    authority: Authority, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("nobody's")
    async with (
        api_server() as api,
        agent(authority, tmp_path, judge=TokenReviewer(ApiServer(api.url))) as url,
    ):
        login = LoginOptions(ca_file=authority.cert, token_file=token)
        client = DirectClient(timeout=PATIENCE, login=open_login(login, [url]))
        reader = AgentReader(client, url, NODE)
        with pytest.raises(ReadFault) as refused:
            await reader.read()
        token.write_text("second")
        with pytest.raises(ReadFault, match="'/podgpu/api/v1/snapshot'") as forbidden:
            await reader.read()
        token.write_text("first\n")
        assert (await reader.read()).node == NODE
        token.unlink()
        with pytest.raises(ReadFault) as missing:
            await reader.read()
        await client.close()
        assert await reason(url, ca_file=authority.cert) == "unauthorized"
    assert [caught.value.reason for caught in (refused, forbidden, missing)] == [
        "unauthorized",
        "forbidden",
        "login",
    ]


async def test_a_certificate_and_a_password_are_shown(authority: Authority, tmp_path: Path) -> None:
    rules = (
        f"  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: {authority.cert}\n"
        f"basic_auth_users:\n  ada: {hashed('s3cret')}\n"
    )
    (tmp_path / "password").write_text("ada:s3cret\n")
    pair = authority.sign("client")
    shown = {"client_cert_file": pair.cert, "client_key_file": pair.key}
    password = {"password_file": tmp_path / "password"}
    async with agent(authority, tmp_path, rules) as url:
        assert await reason(url, ca_file=authority.cert, **shown, **password) == ""
        assert await reason(url, ca_file=authority.cert, **shown) == "unauthorized"
        # Without a certificate the server may end the handshake, or answer that it needs one.
        assert await reason(url, ca_file=authority.cert, **password) in ("tls", "forbidden", "unauthorized")


async def test_a_certificate_counts_for_its_name_alone(authority: Authority, tmp_path: Path) -> None:
    async with agent(authority, tmp_path) as url:
        assert await reason(url, ca_file=authority.cert, server_name="localhost") == ""
        assert await reason(url, ca_file=authority.cert, server_name="elsewhere") == "tls"
        assert await reason(url) == "tls"
        client = DirectClient(
            timeout=PATIENCE, login=open_login(LoginOptions(server_name="elsewhere", ca_file=authority.cert))
        )
        with pytest.raises(ReadFault, match="certificate is not valid for 'elsewhere'"):
            await client.get(url)
        await client.close()


async def test_the_cluster_logs_in_with_what_the_options_name(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first")
    async with (
        api_server() as api,
        agent(authority, tmp_path, judge=TokenReviewer(ApiServer(api.url))) as url,
    ):
        flags = {
            "cluster_agents": [url],
            "login_ca_file": [str(authority.cert)],
            "login_token_file": [str(tmp_path / "token")],
        }
        cluster = open_cluster(load(flags, {}))
        await until(lambda: cluster.loop.ready)
        (node,) = cluster.loop.cluster.nodes
        await cluster.close()
    assert (node.name, node.state) == (NODE, "fresh")


def own_address() -> str:
    """An address of this machine that other machines know: the pods of a cluster have no others."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing
        return str(probe.getsockname()[0])


async def test_the_pod_of_an_agent_is_logged_in_to_by_the_name_in_its_certificate(
    authority: Authority, tmp_path: Path
) -> None:
    try:
        address = own_address()
    except OSError:
        pytest.skip("this machine has no network")
    (tmp_path / "token").write_text("first")
    reviewer, kubernetes = api_server(), cluster_of(agent_pod())
    file = web_config(tmp_path, authority.sign("server"))
    async with reviewer, kubernetes:
        guard = Guard(file, TokenReviewer(ApiServer(reviewer.url)))
        node = StubNode()
        node.current = make_snapshot(RECORDED_NODE)
        async with serving(node, Address(address, 0), guard=guard) as server:
            pod = kubernetes.pods[-1]
            pod["status"]["podIP"] = address
            pod["spec"]["containers"][0]["ports"][0]["containerPort"] = server.ports[0]
            flags = {
                "kube_api": [kubernetes.url],
                "cluster_via": ["direct"],
                "cluster_scheme": ["https"],
                "login_ca_file": [str(authority.cert)],
                "login_server_name": ["localhost"],
                "login_token_file": [str(tmp_path / "token")],
            }
            cluster = open_cluster(load(flags, {}))
            await until(lambda: cluster.loop.ready)
            (found,) = cluster.loop.cluster.nodes
            full = await cluster.loop.full(RECORDED_NODE)
            await cluster.close()
    assert (found.name, found.state, found.origin) == (RECORDED_NODE, "fresh", "agent")
    assert full.node == RECORDED_NODE


@pytest.mark.parametrize(
    ("flags", "advice"),
    [
        ({"cluster_agents": ["http://gpu-1:19400"]}, "never sent over plain HTTP; write https://gpu-1:19400"),
        ({"kube_api": ["http://127.0.0.1:1"], "cluster_via": ["direct"]}, "give --cluster.scheme=https"),
        (
            {"kube_api": ["http://127.0.0.1:1"], "cluster_via": ["proxy"], "cluster_scheme": ["https"]},
            "run podgpu cluster in the cluster",
        ),
    ],
)
async def test_a_token_goes_nowhere_where_others_could_read_it(
    tmp_path: Path, flags: dict[str, list[str]], advice: str
) -> None:
    (tmp_path / "token").write_text("first")
    chosen: Iterable[tuple[str, list[str]]] = (
        *flags.items(),
        ("login_token_file", [str(tmp_path / "token")]),
    )
    with pytest.raises(UserError, match=advice):
        open_cluster(load(dict(chosen), {}))
