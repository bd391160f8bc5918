"""HTTP/1.1 on asyncio: listeners, connections, requests and responses. It knows no page and no credentials."""
