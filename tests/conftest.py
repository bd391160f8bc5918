import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no reason to fail, so there is no deadline. PODGPU_TEST_PROFILE=deep looks further: `make deep`.
# CI must say the same of the same change: `ci` tries the same examples each time. So does `quick`, for another Python.
PROFILE = "PODGPU_TEST_PROFILE"
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("usual", PATIENT)
settings.register_profile("deep", PATIENT, max_examples=150)
settings.register_profile("ci", PATIENT, max_examples=150, derandomize=True)
settings.register_profile("quick", PATIENT, max_examples=50, derandomize=True)
settings.load_profile(os.environ.get(PROFILE, "usual"))

GOLDEN = Path(__file__).parent / "golden"

Golden = Callable[[str, str | bytes], None]

# Reasons that name what this machine is, which no package mends. All others name a tool.
MACHINE = re.compile("in a container|no namespaces here|cgroup|no process can be moved|needs root|only root")


# Tests that start whole programs and wait for them. Beside those that keep every core busy they would take long.
ALONE = (
    "agent/switch_log",
    "agent/whole",
    "browser",
    "cli/serving",
    "cli/terminal",
    "cli/test_service",
    "deploy/watching",
    "e2e",
    "faults",
    "push",
    "serve/http/test_flood",
    "serve/guard/test_tls",
    "serve/test_server",
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every process must collect the same cases in the same order, and the order of a set is another in each."""
    for marker in metafunc.definition.iter_markers("parametrize"):
        values = marker.kwargs.get("argvalues", *marker.args[1:2])
        if isinstance(values, set | frozenset):
            raise pytest.UsageError(f"{metafunc.definition.nodeid}: its cases are a set; sort them")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if " at 0x" in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid}: another id in each process; give it `ids`")
        place = item.path.as_posix().removeprefix(f"{Path(__file__).parent.as_posix()}/")
        if place.startswith(ALONE):
            item.add_marker(pytest.mark.alone)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes get no id of their own: what `gzip` writes depends on the time; all processes collect the same tests."""
    return argname if isinstance(val, bytes) else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the golden files; review the diff")
    parser.addoption("--no-skips", action="store_true", help="fail if a test is skipped because a tool is missing")


def _without_tool(config: pytest.Config) -> list[str]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not config.getoption("--no-skips"):
        return []
    reasons = {str(report.longrepr[2]) for report in reporter.stats.get("skipped", ())}
    return sorted(reason for reason in reasons if not MACHINE.search(reason))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _without_tool(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(config: pytest.Config) -> None:
    for reason in _without_tool(config):
        print(f"--no-skips: {reason}; .ci/run installs what the tests use")


@pytest.fixture(scope="session", autouse=True)
def nothing_around(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hide this machine's settings, kubelet, pod logs and cluster, so that the tests pass on a node too."""
    empty = tmp_path_factory.mktemp("nothing")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("PODGPU_", "KUBERNETES_", "NODE_NAME", "OTEL_"))]:
            patch.delenv(name)
        patch.setenv("PODGPU_PATH_KUBELET", str(empty / "kubelet"))
        patch.setenv("PODGPU_PATH_LOGS", str(empty / "log"))
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """`golden(name, content)` asserts that the content equals tests/golden/<name>."""

    def check(name: str, content: str | bytes) -> None:
        path = GOLDEN / name
        found = content.encode() if isinstance(content, str) else content
        if request.config.getoption("--update"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(found)
            return
        advice = "run pytest --update and review the diff"
        assert path.exists(), f"tests/golden/{name} is missing: {advice}"
        expected = path.read_bytes()
        if found != expected:
            # Compared as lines, so that pytest shows which ones differ.
            assert found.decode().splitlines() == expected.decode().splitlines(), advice
            pytest.fail(f"tests/golden/{name} differs in line ends: {advice}")

    return check
