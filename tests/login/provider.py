"""A small OpenID Connect provider, which lets everyone in as the same person. Tokens are signed by openssl."""

import json
import subprocess
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

CLIENT, SECRET = "podgpu", "a secret of the client"
HOUR = 3600


@dataclass(frozen=True)
class Provider:
    url: str
    key: Path
    email: str

    def token(self, nonce: str = "") -> str:
        """Make an ID token, as a person or a program gets it."""
        now = int(time.time())
        claims: dict[str, object] = {
            "iss": self.url,
            "aud": CLIENT,
            "sub": "CgVhbGljZRIFbG9jYWw",
            "email": self.email,
        }
        claims |= {"email_verified": True, "nonce": nonce, "iat": now, "exp": now + HOUR}
        signed = b".".join((_encoded({"alg": "RS256", "kid": "1", "typ": "JWT"}), _encoded(claims)))
        command = ["openssl", "dgst", "-sha256", "-sign", str(self.key)]
        signature = subprocess.run(command, input=signed, capture_output=True, check=True).stdout
        return b".".join((signed, _base64(signature))).decode()

    @property
    def keys(self) -> Mapping[str, object]:
        command = ["openssl", "rsa", "-in", str(self.key), "-noout", "-modulus"]
        modulus = subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
        number = bytes.fromhex(modulus.partition("=")[2])
        public = {"kty": "RSA", "kid": "1", "use": "sig", "alg": "RS256", "e": "AQAB"}
        return {"keys": [{**public, "n": _base64(number).decode()}]}

    @property
    def configuration(self) -> Mapping[str, object]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "id_token_signing_alg_values_supported": ["RS256"],
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
        }


@contextmanager
def provider(folder: Path, email: str) -> Iterator[Provider]:
    key = folder / "provider.key"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.provider = Provider(f"http://127.0.0.1:{server.server_port}", key, email)  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.provider  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    @property
    def provider(self) -> Provider:
        return self.server.provider  # type: ignore[attr-defined, no-any-return]

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/authorize":
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            # The code carries what the token must repeat.
            back = urlencode({"code": f"code-{query.get('nonce', '')}", "state": query["state"]})
            self.send_response(302)
            self.send_header("Location", f"{query['redirect_uri']}?{back}")
            self.end_headers()
        elif url.path == "/keys":
            self._answer(self.provider.keys)
        else:
            self._answer(self.provider.configuration)

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        token = self.provider.token(form["code"][0].removeprefix("code-"))
        self._answer({"access_token": "opaque", "token_type": "Bearer", "expires_in": HOUR, "id_token": token})

    def _answer(self, document: Mapping[str, object]) -> None:
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _encoded(document: Mapping[str, object]) -> bytes:
    return _base64(json.dumps(document).encode())


def _base64(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")
