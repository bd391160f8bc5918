"""`--watch`: what a command prints when the cluster changes, and how it ends."""

import asyncio
import signal
import sys

import pytest
from msgspec.structs import replace

from tests.patience import PATIENCE
from tests.serve.rig import StubNode, serving
from tests.views.quirks import SNAPSHOT


@pytest.mark.parametrize(
    ("command", "sign"),
    [
        (["inspect"], "{node}"),
        (["idle", "--for=1s", "-o", "json"], '"taken_at": {at}'),
    ],
)
async def test_news_are_printed_until_the_user_has_seen_enough(command: list[str], sign: str) -> None:
    node = StubNode()
    node.current = replace(SNAPSHOT, node="before", taken_at=SNAPSHOT.taken_at + 0.25)
    async with serving(node) as server:
        url = f"--url=http://127.0.0.1:{server.ports[0]}"
        program = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "podgpu", *command, "--watch", url),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            # A shell that runs the tests in the background lets them ignore it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        assert program.stdout
        try:
            async with asyncio.timeout(PATIENCE):
                first = await program.stdout.read(1 << 16)
                node.current = replace(SNAPSHOT, node="after", taken_at=SNAPSHOT.taken_at + 9.25)
                later = b""
                while sign.format(node="after", at=node.current.taken_at).encode() not in later:
                    piece = await program.stdout.read(1 << 16)
                    assert piece, (first, later)
                    later += piece
        finally:
            program.send_signal(signal.SIGINT)
            code = await program.wait()
    assert b"after" not in first
    assert code in (0, 1)  # 1: something could not be read, as without --watch
