"""The commands of docs/install.md, as far as they can be run without a cluster."""

import re
import shlex
from itertools import pairwise

import pytest
import yaml

from tests.deploy import chart
from tests.deploy.chart import needs_helm
from tools.chart import CHART, PROJECT, manifests

PAGE = (PROJECT / "docs/install.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ (.*)$", PAGE, re.MULTILINE)
INSTALLS = [each for each in COMMANDS if each.startswith("helm upgrade")]
OPTIONS = re.findall(r"^\|[^|]*\| `(--set.*)` \|$", PAGE, re.MULTILINE)
VALUES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def settings(command: str) -> list[str]:
    words = shlex.split(command.replace("$REGISTRY", "registry.example.com/gpu"))
    return [f"{name}={value}" for name, value in pairwise(words) if name.startswith("--set")]


@needs_helm
@pytest.mark.parametrize("line", INSTALLS + OPTIONS)
def test_helm_takes_the_settings_as_written(line: str) -> None:
    place = ["template", "podgpu", str(CHART), f"--kube-version={manifests.KUBERNETES}"]
    done = chart.helm(*place, *settings(line))
    assert settings(line) and done.returncode == 0, done.stderr


@needs_helm
@pytest.mark.parametrize("block", VALUES)
def test_helm_takes_the_values_as_written(block: str) -> None:
    assert chart.text(yaml.safe_load(block))


def test_the_page_has_what_these_tests_look_for() -> None:
    assert len(INSTALLS) == 2 and len(OPTIONS) == 15 and len(VALUES) == 4


def test_every_file_named_in_a_command_exists() -> None:
    named = {word for line in COMMANDS for word in shlex.split(line) if word.startswith("deploy/")}
    assert named >= {"deploy/manifests/podgpu.yaml", "deploy/systemd/podgpu.service"}
    assert all((PROJECT / each).exists() for each in named)


def test_every_manifest_is_described() -> None:
    assert set(re.findall(r"^\| `(podgpu[a-z-]*\.yaml)` \|", PAGE, re.MULTILINE)) == set(manifests.KINDS)
