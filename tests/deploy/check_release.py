"""Every file of a release, as its users take it: installed, started, compared. `make test-release` builds it first."""

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from podgpu import __version__
from tests.deploy.container import Archive, Run, running
from tests.deploy.test_image import MACHINES, machines
from tests.ports import quiet_port
from tools.image import build, lock, sbom

ROOT = Path(__file__).resolve().parents[2]
DIST = Path(os.environ.get("PODGPU_RELEASE", ROOT / "dist"))
EMULATOR = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")


def read(name: str) -> bytes:
    return (DIST / name).read_bytes()


def unpacked(name: str, folder: Path) -> Path:
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(read(name)))) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def index() -> dict[str, Any]:
    """What the archive's one name points to."""
    archive = image_archive()
    found: dict[str, Any] = archive.manifest
    return found


def image_archive() -> Archive:
    return Archive.read(read(f"podgpu-{__version__}-image.oci.tar"))


def image_digest() -> str:
    (only,) = json.loads(image_archive().files["index.json"])["manifests"]
    return str(only["digest"])


def test_the_sums_are_those_of_all_files() -> None:
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=DIST, check=False, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    listed = {line.split()[1] for line in read("SHA256SUMS").decode().splitlines()}
    assert listed == {str(path.relative_to(DIST)) for path in DIST.rglob("*") if path.is_file()} - {"SHA256SUMS"}


def test_the_provenance_names_every_file_and_the_commit() -> None:
    statement = json.loads(read(f"podgpu-{__version__}.provenance.json"))
    sums = {each["name"]: each["digest"]["sha256"] for each in statement["subject"]}
    assert sums == {name: hashlib.sha256(read(name)).hexdigest() for name in sums}
    assert f"podgpu-{__version__}-image.oci.tar" in sums and f"chart/podgpu-{__version__}.tgz" in sums
    (source, *locks) = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert re.fullmatch("[0-9a-f]{40}", source["digest"]["gitCommit"])
    assert [each["name"] for each in locks] == [lock.FILE, lock.DEVELOPMENT_FILE]


@pytest.mark.parametrize("name", [f"podgpu-{__version__}-py3-none-any.whl", f"podgpu-{__version__}.tar.gz"])
def test_the_python_package_installs_and_reads_gpus(name: str, tmp_path: Path) -> None:
    uv = str(Path(sys.executable).parent / "uv")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(tmp_path / "venv")], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, str(DIST / name)], check=True)
    podgpu = str(tmp_path / "venv" / "bin" / "podgpu")
    assert subprocess.check_output([podgpu, "--version"], text=True).strip() == f"podgpu {__version__}"
    page = subprocess.check_output([podgpu, "snapshot", "--source=simulator", "-o", "json"], cwd=tmp_path)
    assert json.loads(page)["cards"]


def test_the_image_of_this_machine_serves(tmp_path: Path) -> None:
    archive = image_archive().each()[build.own_architecture()]
    archive.unpack(tmp_path / "rootfs")
    port = quiet_port()
    demo = Run(["demo", f"--web.listen-address=127.0.0.1:{port}"], port, 65534)
    with running(tmp_path, archive.config["config"], demo) as page:
        assert "podgpu_gpu_up" in page.get("/metrics")


@pytest.mark.skipif(EMULATOR is None, reason="needs Debian's qemu-user-static")
def test_the_image_for_arm64_starts_in_an_emulator(tmp_path: Path) -> None:
    archive = image_archive().each()["arm64"]
    assert set(machines(archive).values()) == {MACHINES["arm64"]}
    archive.unpack(tmp_path)
    root = ["-L", str(tmp_path), str(tmp_path / "usr/bin/python3.13"), "-sP"]
    program = [str(EMULATOR), "-E", f"PYTHONHOME={tmp_path}/usr", *root]
    site = f"{tmp_path}/usr/local/lib/python3.13/dist-packages"
    code = (
        f"import sys; sys.path.append({site!r}); "
        "sys.argv = ['podgpu', 'snapshot', '--source=simulator', '-o', 'json']; "
        "from podgpu.cli.main import main; sys.exit(main())"
    )
    page = subprocess.check_output([*program, "-c", code], cwd=tmp_path)
    assert json.loads(page)["cards"]


def test_the_index_says_what_each_image_holds_and_how_it_was_made(index: dict[str, Any]) -> None:
    archive = image_archive()
    images = {
        each["platform"]["architecture"]: each for each in index["manifests"] if each["platform"]["os"] == "linux"
    }
    assert set(images) == {"amd64", "arm64"}
    about = [each for each in index["manifests"] if each["platform"]["os"] == "unknown"]
    assert {each["annotations"]["vnd.docker.reference.digest"] for each in about} == {
        each["digest"] for each in images.values()
    }
    for each in about:
        digest = each["annotations"]["vnd.docker.reference.digest"]
        statements = [json.loads(archive.blob(layer)) for layer in json.loads(archive.blob(each))["layers"]]
        assert [statement["predicateType"] for statement in statements] == [
            sbom.PREDICATE,
            build.PROVENANCE_PREDICATE,
        ]
        assert {statement["subject"][0]["digest"]["sha256"] for statement in statements} == {digest[7:]}
    for architecture in images:
        document = json.loads(read(f"podgpu-{__version__}-image-{architecture}.spdx.json"))
        assert document["spdxVersion"] == "SPDX-2.3"


def test_the_chart_installs_the_image_by_its_digest() -> None:
    package = str(DIST / "chart" / f"podgpu-{__version__}.tgz")
    subprocess.run(["helm", "lint", package], check=True, capture_output=True)
    text = subprocess.check_output(["helm", "template", "podgpu", package, "--kube-version=1.36.0"], text=True)
    manifests = [each for each in yaml.safe_load_all(text) if each and each["kind"] == "DaemonSet"]
    image = manifests[0]["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image.endswith(f"@{image_digest()}")
    about = yaml.safe_load(subprocess.check_output(["helm", "show", "chart", package], text=True))
    assert (about["version"], about["appVersion"]) == (__version__, __version__)
    assert image_digest() in about["annotations"]["artifacthub.io/images"]


def test_the_manifests_install_the_image_by_its_digest(tmp_path: Path) -> None:
    folder = unpacked(f"podgpu-{__version__}-manifests.tar.gz", tmp_path) / f"podgpu-{__version__}"
    text = (folder / "manifests" / "podgpu.yaml").read_text()
    assert re.findall(r"image: (\S+)", text) == [f"podgpu:{__version__}@{image_digest()}"]
    assert {path.name for path in (folder / "rules").iterdir()} == {
        path.name for path in (ROOT / "deploy" / "rules").iterdir()
    }


def test_the_dashboards_are_those_of_the_source(tmp_path: Path) -> None:
    folder = unpacked(f"podgpu-{__version__}-dashboards.tar.gz", tmp_path) / f"podgpu-{__version__}"
    source = ROOT / "deploy" / "dashboards"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        path.name: path.read_bytes() for path in source.glob("*.json")
    }


def test_the_kubectl_plugin_installs_itself_once(tmp_path: Path) -> None:
    """As krew does: unpack the archive whose sum the manifest has, and link its program."""
    manifest = yaml.safe_load(read("podgpu.krew.yaml"))
    (platform,) = manifest["spec"]["platforms"]
    name = platform["uri"].rpartition("/")[2]
    assert platform["sha256"] == hashlib.sha256(read(name)).hexdigest()
    assert manifest["spec"]["version"] == f"v{__version__}"
    folder = unpacked(name, tmp_path / "store")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "kubectl-podgpu"
    program.symlink_to(folder / platform["bin"])
    environment = {**os.environ, "HOME": str(tmp_path), "PODGPU_PYTHON": sys.executable}
    environment.pop("XDG_DATA_HOME", None)
    first, second = (
        subprocess.run([program, "--version"], env=environment, check=True, capture_output=True, text=True)
        for _ in range(2)
    )
    assert __version__ in first.stdout and first.stdout == second.stdout
    assert "installing" in first.stderr and second.stderr == ""


def test_the_k9s_plugins_and_the_notes_are_there() -> None:
    assert yaml.safe_load(read("k9s-plugins.yaml"))["plugins"]
    assert read("RELEASE-NOTES.md").decode().startswith(f"# podgpu {__version__}\n")


def test_the_workflows_are_sound() -> None:
    actionlint = shutil.which("actionlint")
    if not actionlint:
        pytest.skip("needs actionlint; go install github.com/rhysd/actionlint/cmd/actionlint@latest")
    done = subprocess.run([actionlint], cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
