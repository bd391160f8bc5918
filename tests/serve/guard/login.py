"""Clients that log in."""

from base64 import b64encode

import bcrypt

from podgpu.serve.server import NodeServer
from tests.serve.rig import Answer, connected


def hashed(password: str, cost: int = 4) -> str:
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(cost)).decode()


def basic(text: str) -> str:
    return f"Basic {b64encode(text.encode()).decode()}"


async def shown(
    server: NodeServer, authorization: str | None, path: str = "/metrics", source: str = "127.0.0.1"
) -> Answer:
    async with connected(server, local_addr=(source, 0)) as client:
        return await client.get(path, **({"Authorization": authorization} if authorization else {}))
