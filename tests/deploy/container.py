"""Unpacks an OCI archive and runs it with runc, as a kubelet would: read-only, without capabilities."""

import gzip
import hashlib
import io
import json
import subprocess
import tarfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any, cast

from tests.patience import PATIENCE

_NAMESPACES = ("pid", "mount", "ipc", "uts")  # the network is the host's, so that the page can be scraped


@dataclass(frozen=True)
class Archive:
    """Every blob is read by its digest, and must have it."""

    files: dict[str, bytes]

    @classmethod
    def read(cls, data: bytes) -> "Archive":
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            members = [member for member in archive if member.isfile()]
            return cls({each.name: cast("Any", archive.extractfile(each)).read() for each in members})

    def blob(self, descriptor: dict[str, Any]) -> bytes:
        algorithm, _, digest = descriptor["digest"].partition(":")
        data = self.files[f"blobs/{algorithm}/{digest}"]
        assert hashlib.sha256(data).hexdigest() == digest and len(data) == descriptor["size"]
        return data

    @property
    def manifest(self) -> dict[str, Any]:
        (only,) = json.loads(self.files["index.json"])["manifests"]
        return cast("dict[str, Any]", json.loads(self.blob(only)))

    def each(self) -> dict[str, "Archive"]:
        """The images of an archive for several architectures, each as if it were alone."""
        (only,) = json.loads(self.files["index.json"])["manifests"]
        descriptors = json.loads(self.blob(only))["manifests"]
        return {
            descriptor["platform"]["architecture"]: Archive(
                {**self.files, "index.json": json.dumps({"manifests": [descriptor]}).encode()}
            )
            for descriptor in descriptors
        }

    @property
    def config(self) -> dict[str, Any]:
        return cast("dict[str, Any]", json.loads(self.blob(self.manifest["config"])))

    def layers(self) -> list[bytes]:
        layers = [gzip.decompress(self.blob(each)) for each in self.manifest["layers"]]
        digests = [f"sha256:{hashlib.sha256(each).hexdigest()}" for each in layers]
        assert digests == self.config["rootfs"]["diff_ids"]
        return layers

    def members(self) -> list[tarfile.TarInfo]:
        return [member for layer in self.layers() for member in listing(layer)]

    def unpack(self, root: Path) -> None:
        for layer in self.layers():
            with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
                archive.extractall(root, filter="fully_trusted")  # noqa: S202 - our own


def listing(layer: bytes) -> list[tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        return archive.getmembers()


def contents(layer: bytes) -> Iterator[tuple[str, bytes]]:
    """The files of a layer."""
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        for member in archive:
            if member.isfile():
                yield member.name, cast("Any", archive.extractfile(member)).read()


@dataclass(frozen=True)
class Page:
    address: str

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=PATIENCE) as answer:
            return cast("bytes", answer.read()).decode()


@dataclass(frozen=True)
class Run:
    """Arguments for the image's own entry point, and folders to show it, read-only."""

    arguments: list[str]
    port: int
    uid: int
    folders: dict[str, Path] = field(default_factory=dict)


@contextmanager
def running(bundle: Path, config: dict[str, Any], run: Run) -> Iterator[Page]:
    """Run the image by its own entry point and environment, until the block ends."""
    (bundle / "config.json").write_text(json.dumps(_specification(config, run)))
    name, log = f"podgpu-test-{run.port}", bundle / f"log-{run.port}"
    runc = ["runc", "--root", str(bundle / "state")]
    command = [*runc, "run", "--bundle", str(bundle), name]
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            page = Page(f"127.0.0.1:{run.port}")
            _await(page, process, log)
            yield page
        finally:
            subprocess.run([*runc, "kill", name, "TERM"], check=False, capture_output=True)
            assert process.wait(PATIENCE) == 0, log.read_text()


def _await(page: Page, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = monotonic() + PATIENCE
    while monotonic() < deadline and process.poll() is None:
        try:
            page.get("/-/ready")
        except OSError:
            sleep(0.1)
        else:
            return
    raise AssertionError(f"the container did not get ready:\n{log.read_text()}")


def _specification(config: dict[str, Any], run: Run) -> dict[str, Any]:
    nothing: list[str] = []
    sets = ("bounding", "effective", "inheritable", "permitted", "ambient")
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": run.uid, "gid": run.uid},
            "args": [*config["Entrypoint"], *run.arguments],
            "env": config["Env"],
            "cwd": config["WorkingDir"],
            "capabilities": dict.fromkeys(sets, nothing),
            "noNewPrivileges": True,
        },
        "root": {"path": "rootfs", "readonly": True},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            *(_bind(inside, folder) for inside, folder in run.folders.items()),
        ],
        "linux": {"namespaces": [{"type": each} for each in _NAMESPACES]},
    }


def _bind(inside: str, folder: Path) -> dict[str, Any]:
    return {"destination": inside, "type": "bind", "source": str(folder), "options": ["rbind", "ro"]}
