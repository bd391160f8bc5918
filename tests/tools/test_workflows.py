"""What the workflows run is named by its content, and the release publishes with tools of a lock."""

import re
import subprocess
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from json import dumps
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from tests.fakeapi.certificate import certificate

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TOKEN = "pypi-of-this-run"


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_each_action_is_named_by_its_commit_and_its_version(workflow: Path) -> None:
    used = re.findall(r"uses: (.*)", workflow.read_text())
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)] == []


def test_an_action_has_the_same_commit_everywhere() -> None:
    used = [each for workflow in WORKFLOWS for each in re.findall(r"uses: ([^@]*)@(.*)", workflow.read_text())]
    assert len(set(used)) == len({name for name, _ in used})


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_only_the_job_that_publishes_may_write(workflow: Path) -> None:
    read = yaml.safe_load(workflow.read_text())
    assert read["permissions"] == {"contents": "read"}
    assert {name for name, job in read["jobs"].items() if "permissions" in job} <= {"publish"}


def test_nobody_elses_action_runs_where_the_release_is_written() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    used = [step["uses"] for step in jobs["publish"]["steps"] if "uses" in step]
    assert {action.partition("/")[0] for action in used} == {"actions", "sigstore"}


def test_programs_by_go_have_a_version() -> None:
    """With a version, Go checks them by its database of checksums."""
    files = [*WORKFLOWS, ROOT / ".ci/run"]
    found = [each for file in files for each in re.findall(r"go install .*?(\S+@\S+)", file.read_text())]
    assert found and not [each for each in found if not re.search(r'@(v\d+\.\d+\.\d+|\$helm_version"?)$', each)]


class PackageIndex(BaseHTTPRequestHandler):
    """The identity of the workflow, and an index that trusts it. `uploads` has the names of the files it got."""

    uploads: list[tuple[str, str]]

    def do_GET(self) -> None:
        said = {"audience": "index"} if self.path == "/_/oidc/audience" else {"value": _identity()}
        self._answer(said)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/_/oidc/mint-token":
            self._answer({"success": True, "token": TOKEN})
            return
        (name,) = re.findall(rb'filename="([^"]*)"', body)
        type(self).uploads.append((name.decode(), self.headers["Authorization"]))
        self._answer({})

    def _answer(self, said: dict[str, Any]) -> None:
        body = dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _identity() -> str:
    parts = ({"alg": "none"}, {"sub": "repo:podgpu", "aud": "index"})
    return ".".join([*(urlsafe_b64encode(dumps(part).encode()).decode().rstrip("=") for part in parts), "x"])


@pytest.fixture
def index(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Its address, and the certificate to trust."""
    PackageIndex.uploads = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), PackageIndex)
    trusted, context = certificate(tmp_path)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"https://127.0.0.1:{server.server_port}", trusted
    server.shutdown()
    server.server_close()


def test_the_packages_are_published_as_the_workflow_does_it(tmp_path: Path, index: tuple[str, Path]) -> None:
    """The step itself, with the lock's uv. Where to, and who the workflow is, comes from the environment there too."""
    built = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path / "dist")]
    subprocess.run(built, cwd=ROOT, check=True, capture_output=True)
    version = next((tmp_path / "dist").glob("*.tar.gz")).name.removeprefix("podgpu-").removesuffix(".tar.gz")
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    (step,) = [step["run"] for step in jobs["publish"]["steps"] if step.get("name") == "publish on PyPI"]
    uv = Path(sys.executable).with_name("uv")
    command = step.replace("make .venv/.uv\n", "").replace(".venv/bin/uv", str(uv))
    url, trusted = index
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "VERSION": f"v{version}",
        "GITHUB_ACTIONS": "true",
        "ACTIONS_ID_TOKEN_REQUEST_URL": f"{url}/identity?api-version=2",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "x",
        "UV_PUBLISH_URL": f"{url}/legacy/",
        "NO_PROXY": "127.0.0.1",
        "SSL_CERT_FILE": str(trusted),
    }
    shell = ["bash", "-e", "-c", command]
    done = subprocess.run(shell, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    names = {name for name, _ in PackageIndex.uploads}
    assert names == {f"podgpu-{version}-py3-none-any.whl", f"podgpu-{version}.tar.gz"}
    assert len({login for _, login in PackageIndex.uploads}) == 1
