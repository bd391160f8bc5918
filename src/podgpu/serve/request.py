"""What a client asks for."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """`path` and `query` are decoded, and the first value of a repeated query name counts; `every` has them all.

    Header names are in lower case, and repeated headers are joined by commas. `remote` is the client's IP address.
    `certified` is whether the client has shown a certificate that a known authority vouches for.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    remote: str | None
    certified: bool = False
    pairs: tuple[tuple[str, str], ...] = ()

    @property
    def is_scrape(self) -> bool:
        """Whether it is for a page of metrics."""
        return self.path == "/metrics" or self.path.startswith("/metrics/")

    def every(self, name: str) -> list[str]:
        return [value for key, value in self.pairs if key == name]
