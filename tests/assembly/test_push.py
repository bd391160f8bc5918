import subprocess
import sys

import pytest

from podgpu.agent.loop import Agent
from podgpu.assembly.agent import open_agent, open_push
from podgpu.config import Config

DEMO = Config(source="simulator")


@pytest.fixture
def agent() -> Agent:
    found = open_agent(DEMO)
    assert isinstance(found, Agent)
    return found


async def test_nothing_is_pushed_unless_the_environment_asks(agent: Agent) -> None:
    assert open_push(DEMO, agent) is None


async def test_an_endpoint_in_the_environment_opens_the_push(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    push = open_push(DEMO, agent)
    assert push is not None and push.status().name == "otlp"


def test_an_agent_that_does_not_push_loads_no_client() -> None:
    loaded = "[n for n in ('podgpu.push.loop', 'opentelemetry') if n in sys.modules]"
    script = f"import sys, podgpu.cli._agent_parts; print({loaded})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
