"""What the web configuration file asks for, ready for use."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

from podgpu.serve.guard import tls
from podgpu.serve.guard.web_config import WebConfig


@dataclass(frozen=True, slots=True)
class Rules:
    context: ssl.SSLContext | None = None
    needs_certificate: bool = False
    users: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, config: WebConfig) -> "Rules":
        """Read the certificates. Raises UserError."""
        if config.tls is None:
            return cls(users=config.users, headers=config.headers)
        return cls(tls.context(config.tls), config.tls.needs_certificate, config.users, config.headers)
