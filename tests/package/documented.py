"""The commands of the documentation, and where each of them can be run."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The runbooks in alerts.md are about a cluster in trouble: NODE, UUID and so on stand for its names.
RUNBOOKS = ROOT / "docs/alerts.md"
PAGES = [
    page for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))) if page != RUNBOOKS
]

# By another test, which plays the page or the command.
ELSEWHERE: Mapping[str, str] = {
    r"openssl |curl .*--cacert|podgpu demo --web\.config\.file": "tests/e2e/test_serving.py",
    r"OTEL_\S+ podgpu agent": "tests/push/test_process.py",
    r"pip install \.$|/opt/podgpu/bin/pip install \.$|python3 -m venv ": "tests/package/test_package.py",
    r"\s*helm upgrade --install opencost ": "tests/e2e/check_opencost.py",
    r"helm upgrade ": "tests/deploy/test_install_page.py",
    r"kubectl apply -f deploy/manifests/": "tests/deploy/test_manifests.py",
    r"curl .*/-/release": "tests/agent/whole/test_faults.py",
    r"podgpu record |podgpu \w+.* --replay\.file=": "tests/cli/test_record.py",
    r"podgpu top\b(?!.*--replay\.file=)": "tests/cli/terminal/test_top.py",
    r"podgpu inspect": "tests/cli/test_inspect.py",
    r"(source <\()?podgpu completion": "tests/cli/test_completion.py",
    r"podgpu report .*focus-parquet": "tests/e2e/check_parquet.py",
    r"podgpu report (?!.*focus-parquet)": "tests/e2e/test_bill.py",
    r"podgpu fit\b": "tests/e2e/test_fit.py",
    r"podgpu snapshot --url ": "tests/docs/test_figures.py",
    r"podgpu idle\b": "tests/e2e/test_store.py",
    r"podgpu cluster\b": "tests/cli/serving/test_cluster.py",
}

# Nowhere here, and why.
CANNOT: Mapping[str, str] = {
    r"apt-get install ": "it changes the machine; .ci/run installs the package",
    r"skopeo copy ": "there is no registry",
    r"ctr ": "there is no containerd",
    r"docker run ": "there is no Docker and no GPU",
    r"kubectl (create|label|delete|podgpu|-n) |kubectl --namespace|helm uninstall": "there is no cluster; "
    "`make test-kubernetes` has one",
    r"podgpu agent --source=nvml\+dcgm$": "there is no cluster to find a dcgm-exporter in",
    r"systemctl |cp deploy/systemd": "there is no systemd; tests/deploy/test_manifests.py verifies the unit",
    r"/opt/podgpu/bin/pip install --require-hashes": "it downloads much; tests/deploy/test_image.py does so too",
}

# Once, to its end, with the exit code that a machine without a GPU gives.
RUNS: Mapping[str, int] = {
    "podgpu snapshot": 1,
    "podgpu doctor": 1,
    "podgpu agent --intervall=1s": 2,
    "podgpu agent --interval=1d": 2,
    "export REGISTRY=registry.example.com/gpu": 0,
    "python3 -m tools.image lock > /tmp/podgpu.lock": 0,
}

# Of a demo that is running.
ASKS = re.compile(r"curl -s http://127\.0\.0\.1:19400/|podgpu why ")
SERVES = re.compile(r"podgpu (agent|demo)\b")
MAKES = re.compile(r"make ")
HELM = re.compile(r"helm install ")


@dataclass(frozen=True)
class Command:
    """A line, without its comment, and what the page says that it prints: nothing if it shows only a part."""

    page: str
    line: str
    output: str


def commands() -> list[Command]:
    found = {command.line: command for page in PAGES for command in _commands(page)}
    return list(found.values())


def _commands(page: Path) -> Iterator[Command]:
    text = page.read_text(encoding="utf-8")
    for kind, block in re.findall(r"^ *```(console|sh)\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL):
        if kind == "sh":
            yield from (Command(page.name, line, "") for line in block.replace("\\\n", "").splitlines())
        else:
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                line, _, output = part.partition("\n")
                yield Command(page.name, re.sub(r" {2,}#.*", "", line), output)
    for line in re.findall(r"^    ((?:docker|podgpu) .*)$", text, re.MULTILINE):
        yield Command(page.name, line, "")


def of(lists: Mapping[str, str], line: str) -> list[str]:
    return [pattern for pattern in lists if re.match(pattern, line)]


def ways(line: str) -> list[str]:
    """How the command is tried. There should be one way."""
    stated = [*of(ELSEWHERE, line), *of(CANNOT, line), *(["run"] if line in RUNS else [])]
    if stated:
        return stated
    kinds = {"ask": ASKS, "serve": SERVES, "make": MAKES, "helm": HELM}
    return [name for name, pattern in kinds.items() if pattern.match(line)]
