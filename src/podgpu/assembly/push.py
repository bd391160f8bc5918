"""Opens the push to an OpenTelemetry collector, if the environment asks for one."""

import time
from functools import partial

from podgpu.agent.loop import Agent, Companion
from podgpu.assembly import machine
from podgpu.config import Config
from podgpu.errors import UserError
from podgpu.push.environment import destination


def open_push(config: Config, agent: Agent) -> Companion | None:
    to = destination(machine.environment())
    if to is None:
        return None
    if not machine.has_package("opentelemetry.proto"):
        raise UserError(
            "the environment asks for an OTLP push, which needs one more package; run pip install 'podgpu[otlp]', "
            "or set OTEL_METRICS_EXPORTER=none"
        )
    # Loaded only where there is a collector to push to: the client takes 12 MiB, the messages 2.
    from podgpu.push.collector import Collector
    from podgpu.push.loop import Push
    from podgpu.views.otlp.message import complaint, encode

    written = partial(encode, resource=to.resource, started_at=time.time(), series_limit=config.series_limit)
    return Push(agent, to, written, Collector(to, complaint))
