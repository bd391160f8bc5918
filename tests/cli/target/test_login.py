"""Logging in to an agent that serves by TLS, asks for a certificate and for a password."""

import asyncio
from pathlib import Path

import pytest

from podgpu.cli.main import main
from podgpu.serve.guard.guard import Guard
from tests.serve.guard.certificates import Authority, web_config
from tests.serve.guard.login import hashed
from tests.serve.rig import StubNode, serving
from tests.views.quirks import SNAPSHOT


async def test_an_agent_that_asks_for_everything_is_looked_at(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    authority = Authority(tmp_path / "authority", "authority")
    server_pair, client_pair = authority.sign("server"), authority.sign("client")
    rules = (
        f"  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: {authority.cert}\n"
        f"basic_auth_users:\n  ada: {hashed('s3cret')}\n"
    )
    (tmp_path / "password").write_text("ada:s3cret\n")
    (tmp_path / "wrong").write_text("ada:wrong\n")
    ca = f"--login.ca-file={authority.cert}"
    cert = [
        f"--login.client-cert-file={client_pair.cert}",
        f"--login.client-key-file={client_pair.key}",
    ]
    node = StubNode()
    node.current = SNAPSHOT
    async with serving(node, guard=Guard(web_config(tmp_path, server_pair, rules))) as server:

        async def why(*options: str) -> tuple[int, str]:
            url = f"--url=https://127.0.0.1:{server.ports[0]}"
            code = await asyncio.to_thread(main, ["why", "ml/llama-0", url, *options])
            out, err = capfd.readouterr()
            return code, out + err

        code, text = await why(ca, *cert, f"--login.password-file={tmp_path / 'password'}")
        assert code == 0 and "The books balance." in text
        assert "give its authority with --login.ca-file" in (await why())[1]
        assert "asks for a login; give --login.token-file or" in (await why(ca, *cert))[1]
        code, text = await why(ca, *cert, f"--login.password-file={tmp_path / 'wrong'}")
        assert code == 2 and "does not accept the login" in text and "wrong" not in text
        assert (await why(ca))[0] == 2
        assert "go together; give both" in (await why(ca, cert[0]))[1]
