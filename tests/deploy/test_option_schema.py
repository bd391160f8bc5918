"""The schema takes what the agent takes, and refuses what the agent would refuse when it starts."""

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from podgpu.config import OPTIONS
from podgpu.errors import UserError
from podgpu.option import NOT_AN_AGENTS, Option
from tests.deploy import chart
from tests.deploy.chart import needs_helm
from tools.chart import option_schema, schema

DEFINITIONS = json.loads(schema.text())["definitions"]
# Of each kind that options have, and some of none.
TEXTS = [
    *("5s", "500ms", "1.5m", "2h", "5", "0.5", "05s", "5x", "s", ".5s", "5 s", "-5s", "1e3"),
    *("16MiB", "64KiB", "1048576", "1.5MiB", "16MB"),
    *("auto", "off", "on", "true", "check", "always", "info", "top"),
    *("http://127.0.0.1:9400", "https://dcgm.example.com/metrics", "ftp://x", "127.0.0.1:9400", "http:"),
    *(":9400", "127.0.0.1:9400", "[::1]:19401", ":9400=dcgm", ":9400=dcmg", "9400", ":", "host/x:1"),
    *("podgpu_gpu_up", "podgpu_gpu_upp", "podgpu_*", "DCGM_FI_DEV_GPU_UTIL", "*", "9lives", "a-b", "_*:"),
    *("/metrics", "metrics", "/a b"),
]
AGENTS = [option for option in OPTIONS.values() if option.group not in NOT_AN_AGENTS and option.in_file]


def takes(option: Option[Any], text: str) -> bool:
    """Whether the form is right: a range is for the templates, a file for the pod."""
    try:
        option.value([text])
    except UserError as error:
        known = ("out of range", "there is no file", "cannot read")
        return any(word in str(error) for word in known) or ("does not fit" in str(error) and text.isdigit())
    return True


def allows(option: Option[Any], value: object) -> bool:
    given = [value] if option.repeatable else value
    return bool(jsonschema.Draft7Validator(DEFINITIONS[option.key]).is_valid(given))


@pytest.mark.parametrize("option", AGENTS, ids=lambda option: option.key)
def test_the_schema_takes_what_the_agent_takes_and_nothing_else(option: Option[Any]) -> None:
    wrong = [text for text in TEXTS if allows(option, text) != takes(option, text)]
    assert wrong == []
    assert option.default is None or allows(option, option.default)


@needs_helm
def test_every_bound_is_known_to_the_templates() -> None:
    ranges = yaml.safe_load(schema.ranges())
    bounded = {option.key for option in AGENTS if option_schema.bounded(option)}
    assert {"interval", "idle.after", "dcgm.max-bytes", "series.limit"} <= bounded <= set(ranges)
    edges = {key: ranges[key]["most"] for key in bounded}
    assert chart.text({"config": edges}) and chart.text({"config": {key: ranges[key]["least"] for key in bounded}})
