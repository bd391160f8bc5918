"""The commands of docs/install.md, as far as they can be run without a cluster."""

import re
import shlex
from functools import cache
from itertools import pairwise

import pytest
import yaml

from tests.deploy import chart
from tests.deploy.chart import needs_helm
from tools.chart import CHART, PROJECT, manifests

PAGE = (PROJECT / "docs/install.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ (.*)$", PAGE, re.MULTILINE)
PAGES = [PROJECT / "README.md", PROJECT / "README.zh-CN.md", *sorted((PROJECT / "docs").glob("*.md"))]
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
INSTALLS = re.findall(r"^(?:\$ )?(helm (?:upgrade|install) .*deploy/helm/podgpu.*)$", TEXT, re.MULTILINE)
OPTIONS = re.findall(r"^\|[^|]*\| `(--set.*)` \|$", PAGE, re.MULTILINE)
# Blocks of YAML with nothing but values of the chart.
KNOWN = set(yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8")))
VALUES = [
    block
    for block in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    if isinstance(found := next(yaml.safe_load_all(block)), dict) and set(found) <= KNOWN
]


def settings(command: str) -> list[str]:
    words = shlex.split(command.replace("$REGISTRY", "registry.example.com/gpu"))
    return [f"{name}={value}" for name, value in pairwise(words) if name.startswith("--set")]


@cache
def examples() -> dict[str, str]:
    """Each example of the docs as Helm renders it, or what Helm says to it."""
    place = ["template", "podgpu", str(CHART), f"--kube-version={manifests.KUBERNETES}"]
    lines = {line: chart.helm(*place, *settings(line)) for line in [*INSTALLS, *OPTIONS]}
    done = lines | {block: chart.helm(*place, values=yaml.safe_load(block)) for block in VALUES}
    return {example: each.stdout or each.stderr for example, each in done.items()}


@cache
def rendered() -> list[chart.Object]:
    return [each for said in examples().values() for each in chart.parse(said)]


@needs_helm
def test_helm_takes_every_documented_example() -> None:
    assert {example: said for example, said in examples().items() if said.startswith("Error")} == {}


@needs_helm
@pytest.mark.parametrize("version", chart.VERSIONS)
def test_kubernetes_knows_every_field_of_the_documented_examples(version: str) -> None:
    chart.validate(rendered(), version)


def test_the_pages_have_what_these_tests_look_for() -> None:
    assert all(settings(line) for line in [*INSTALLS, *OPTIONS])
    assert len(INSTALLS) >= 5 and len(OPTIONS) >= 17 and len(VALUES) >= 13


def test_every_file_named_in_a_command_exists() -> None:
    named = {word for line in COMMANDS for word in shlex.split(line) if word.startswith("deploy/")}
    assert named >= {"deploy/manifests/podgpu.yaml", "deploy/systemd/podgpu.service"}
    assert all((PROJECT / each).exists() for each in named)


def test_every_manifest_is_described() -> None:
    assert set(re.findall(r"^\| `(podgpu[a-z-]*\.yaml)` \|", PAGE, re.MULTILINE)) == set(manifests.KINDS)
