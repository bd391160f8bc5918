"""A process that plays the agents of many nodes: `python -m bench.fleet 1000 [CERTIFICATE KEY]`.

It writes its addresses as a line of JSON. Each line that it reads is a number of nodes that get a new document.
"""

import asyncio
import json
import ssl
import sys
from itertools import islice

from msgspec.structs import replace

from podgpu.cli._node_reading import read_node
from podgpu.config.precedence import load
from podgpu.model import Card, Snapshot
from podgpu.views.cluster.json import slim
from podgpu.views.json import encode
from tests.cluster.fleet import Document, Fleet

PODS = 10
NODE = "0000000000"
VERSION = "1234567890.25"


async def main(size: int, *pair: str) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if pair else None
    if tls:
        tls.load_cert_chain(*pair)
    async with Fleet(size, await documents(), tls=tls) as fleet:
        fleet.prepare()
        print(json.dumps(fleet.urls), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            fleet.change(range(int(line)))
            print("changed", flush=True)


async def documents() -> Document:
    """Make the documents from the demo's node: 8 GPUs, of which ten tenants are kept."""
    read = await read_node(load({"source": ["simulator"]}, {}), cycles=3, pause=0.1)
    node = replace(_with_pods(slim(read), PODS), node=NODE, taken_at=float(VERSION))
    text = encode(node).replace(b'"uuid":"GPU-', b'"uuid":"GPU-' + NODE.encode())

    def document(number: int, version: int) -> bytes:
        own = text.replace(NODE.encode(), b"%010d" % number)
        return own.replace(VERSION.encode(), b"%.2f" % (float(VERSION) + version))

    return document


def _with_pods(snapshot: Snapshot, number: int) -> Snapshot:
    tenants = {id(tenant) for tenant in islice((tenant for card in snapshot.cards for tenant in card.tenants), number)}

    def cut(card: Card) -> Card:
        return replace(card, tenants=tuple(tenant for tenant in card.tenants if id(tenant) in tenants))

    return replace(snapshot, cards=tuple(map(cut, snapshot.cards)), pods=snapshot.pods[:number])


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), *sys.argv[2:]))
