import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from podgpu import __version__
from tests.deploy import chart
from tests.deploy.chart import needs_helm
from tests.deploy.container import Archive, Page, Run, contents, listing, running
from tests.ports import quiet_port
from tools.image import build, debian, lock, oci, sbom, tree

ROOT = Path(__file__).resolve().parents[2]
LOCK, DEVELOPMENT = (
    (ROOT / name).read_text(encoding="utf-8") for name in ("requirements.lock", "requirements-dev.lock")
)
EPOCH = 1_700_000_000
MOST_BYTES = 90_000_000

pytestmark = pytest.mark.slow


def missing() -> str:
    absent = [each for each in ("mmdebstrap", "dpkg-deb", "runc") if not shutil.which(each)]
    if absent:
        return f"needs Debian's {', '.join(absent)}"
    return "" if os.geteuid() == 0 else "needs root, to run a container"


needs_tools = pytest.mark.skipif(bool(missing()), reason=missing())


# Of this machine, and another.
OWN = build.own_architecture()
OTHER = next(each for each in build.ARCHITECTURES if each != OWN)
MACHINES = {"amd64": 62, "arm64": 183}  # as ELF calls them


@pytest.fixture(scope="module")
def fetched(tmp_path_factory: pytest.TempPathFactory) -> list[build.Parts]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", str(EPOCH))
        return build.fetch(tmp_path_factory.mktemp("parts"), [OWN, OTHER], debian.MIRROR, debian.SECURITY)


@pytest.fixture(scope="module")
def parts(fetched: list[build.Parts]) -> build.Parts:
    return fetched[0]


@pytest.fixture(scope="module")
def image(parts: build.Parts) -> build.Image:
    return build.assemble(parts, EPOCH, "0123abc")


@pytest.fixture(scope="module")
def both(image: build.Image, fetched: list[build.Parts]) -> dict[str, Archive]:
    """The images of an archive for two architectures. The other one cannot be run here."""
    other = build.assemble(fetched[1], EPOCH, "0123abc")
    return Archive.read(oci.archive(build.together([image, other]))).each()


@pytest.fixture(scope="module")
def archive(image: build.Image) -> Archive:
    return Archive.read(image.archive)


@pytest.fixture(scope="module")
def bundle(archive: Archive, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    archive.unpack(folder / "rootfs")
    return folder


@needs_tools
@pytest.mark.parametrize("uid", [65534, 0])
def test_it_serves_from_a_read_only_root_without_capabilities(bundle: Path, archive: Archive, uid: int) -> None:
    port = quiet_port()
    demo = Run(["demo", f"--web.listen-address=127.0.0.1:{port}"], port, uid)
    with running(bundle, archive.config["config"], demo) as page:
        assert re.search(r"^podgpu_up\{[^}]*\} 1\.0$", page.get("/metrics"), re.MULTILINE)
        assert json.loads(page.get("/api/v1/snapshot"))["schema"]
        assert page.get("/-/healthy")


@needs_tools
@needs_helm
def test_it_runs_as_the_chart_says(bundle: Path, archive: Archive, tmp_path: Path) -> None:
    values: dict[str, Any] = {
        "port": quiet_port(),
        "listeners": [{"port": quiet_port(), "dialect": "dcgm"}],
        "customMetrics": "DCGM_FI_DEV_GPU_UTIL, gauge, Use.\n",
        "config": {"source": "simulator", "series.limit": 10000000, "kube.api": False},
    }
    manifests = chart.parse(chart.text(values))
    for name, content in chart.only(manifests, "ConfigMap")["data"].items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    container = chart.agent(manifests)
    user = container["securityContext"]["runAsUser"]
    agent = Run(container["args"], values["port"], user, {"/etc/podgpu": tmp_path})
    with running(bundle, archive.config["config"], agent) as page:
        assert page.get(container["livenessProbe"]["httpGet"]["path"])
        assert page.get(container["readinessProbe"]["httpGet"]["path"])
        old = Page(f"127.0.0.1:{values['listeners'][0]['port']}").get("/metrics")
        assert "DCGM_FI_DEV_GPU_UTIL{" in old and "DCGM_FI_DEV_FB_USED" not in old


@needs_tools
def test_the_same_parts_give_the_same_bytes(parts: build.Parts, image: build.Image) -> None:
    assert build.assemble(parts, EPOCH, "0123abc") == image


def machines(archive: Archive) -> dict[str, int]:
    """What each program and library is made for, by its ELF header."""
    found: dict[str, int] = {}
    for layer in archive.layers():
        for name, data in contents(layer):
            if data[:4] == b"\x7fELF":
                found[name] = int.from_bytes(data[18:20], "little")
    return found


@needs_tools
def test_an_archive_for_two_architectures_holds_an_image_of_each(both: dict[str, Archive]) -> None:
    assert set(both) == {OWN, OTHER}
    for architecture, archive in both.items():
        assert (archive.config["architecture"], archive.config["os"]) == (architecture, "linux")
        found = machines(archive)
        assert set(found.values()) == {MACHINES[architecture]}
        assert "usr/bin/python3.13" in found
        modules = {name.rpartition("/")[2].partition(".")[0] for name in found if "dist-packages" in name}
        assert {"_core", "parser", "_yaml", "_bcrypt"} <= modules
    assert both[OTHER].config["config"] == both[OWN].config["config"]


@needs_tools
def test_both_hold_the_same_of_podgpu(both: dict[str, Archive]) -> None:
    """Its bytecode too, though the other's is compiled by this machine's Python."""

    def of_podgpu(archive: Archive) -> dict[str, bytes]:
        found = contents(archive.layers()[1])
        return {name: data for name, data in found if "/podgpu" in name and not name.endswith(".json")}

    assert of_podgpu(both[OTHER]) == of_podgpu(both[OWN])
    assert any(name.endswith(".pyc") for name in of_podgpu(both[OWN]))


@needs_tools
def test_it_is_small_and_holds_no_shell_and_no_installer(archive: Archive, image: build.Image) -> None:
    assert len(image.archive) <= MOST_BYTES
    names = {member.name for member in archive.members()}
    programs = {Path(name).name for name in names if name.startswith("usr/bin/")}
    assert programs == {"podgpu", "python3", "python3.13"}
    assert not [name for name in names if "/dist-packages/pip" in name or "/ensurepip" in name]


@needs_tools
def test_nothing_in_it_runs_with_more_rights_than_its_caller(archive: Archive) -> None:
    members = archive.members()
    assert not [member.name for member in members if member.isfile() and member.mode & 0o6002]
    assert {(member.uid, member.gid, member.mtime) for member in members} == {(0, 0, EPOCH)}


@needs_tools
def test_its_bytecode_is_used_as_it_is(bundle: Path) -> None:
    code = "import podgpu.cli.main as m; print(m.__cached__, m.main.__code__.co_filename)"
    done = subprocess.run(
        ["chroot", str(bundle / "rootfs"), "/usr/bin/python3", "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    cached, source = done.stdout.split()
    assert (bundle / "rootfs" / cached.lstrip("/")).is_file()
    assert source == "/usr/local/lib/python3.13/dist-packages/podgpu/cli/main.py"


@needs_tools
def test_its_bill_of_materials_names_every_package_and_wheel(bundle: Path, image: build.Image) -> None:
    assert (bundle / "rootfs" / sbom.PLACE).read_text(encoding="utf-8") == image.sbom
    document = json.loads(image.sbom)
    assert document["spdxVersion"] == "SPDX-2.3"
    parts = [each for each in document["packages"] if each["SPDXID"] != sbom.IMAGE_ID]
    contained = [each["relatedSpdxElement"] for each in document["relationships"][1:]]
    assert contained == [each["SPDXID"] for each in parts] and len(set(contained)) == len(parts)
    urls = {each["externalRefs"][0]["referenceLocator"].partition("@")[0] for each in parts}
    locked = {each.name for each in lock.requirements(lock.needed(LOCK))}
    assert {url.removeprefix("pkg:pypi/") for url in urls if url.startswith("pkg:pypi/")} == locked
    assert {"pkg:deb/debian/libc6", "pkg:deb/debian/python3.13", "pkg:deb/debian/libssl3t64"} <= urls


@needs_tools
def test_its_labels_say_what_it_is(archive: Archive) -> None:
    labels = archive.config["config"]["Labels"]
    assert labels["org.opencontainers.image.version"] == __version__
    assert labels["org.opencontainers.image.revision"] == "0123abc"
    assert labels["org.opencontainers.image.created"] == "2023-11-14T22:13:20Z"
    assert archive.manifest["annotations"] == labels


def test_the_runtime_needs_what_podgpu_imports_and_no_tool_of_ours() -> None:
    names = {each.name for each in lock.requirements(lock.needed(LOCK))}
    assert {
        "httptools",
        "grpclib",
        "h2",
        "protobuf",
        "msgspec",
        "pyyaml",
        "nvidia-ml-py",
    } <= names
    assert not names & {"aiohttp", "pytest", "mypy", "ruff", "hatchling", "grpcio-tools", "prometheus-client"}


def test_each_requirement_keeps_its_hashes() -> None:
    entries = list(lock.requirements(lock.needed(LOCK)))
    assert all("--hash=sha256:" in each.text and "# via" not in each.text for each in entries)


def test_the_wheel_is_built_by_hatchling_alone() -> None:
    names = [each.name for each in lock.requirements(lock.needed(DEVELOPMENT, for_build=True))]
    assert "hatchling" in names and "pytest" not in names and "aiohttp" not in names


def test_there_is_nothing_but_the_runtime_in_its_lock() -> None:
    """`make demo` and the image install no linters; and both locks have the same versions."""
    runtime, all_of_it = (
        {each.name: each.text.split()[0] for each in lock.requirements(text)} for text in (LOCK, DEVELOPMENT)
    )
    assert runtime.keys() == {each.name for each in lock.requirements(lock.needed(DEVELOPMENT))}
    assert not {"ruff", "mypy", "pytest", "hatchling", "grpcio-tools"} & runtime.keys()
    assert runtime.items() <= all_of_it.items()


def test_the_demo_needs_the_runtime_alone() -> None:
    asked = subprocess.run(
        ["make", "-n", "-B", "demo", "VENV=/nowhere"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert "-r requirements.lock" in asked
    assert "requirements-dev.lock" not in asked and "--editable" not in asked


def test_the_lock_is_printed_for_the_dockerfile() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.image", "lock"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == lock.needed(LOCK)


def test_a_layer_has_every_folder_above_a_file_once() -> None:
    data = tree.layer({"a/b/c": tree.file("x"), "a/link": tree.link("b")}, EPOCH)
    assert [member.name for member in listing(data)] == ["a", "a/b", "a/b/c", "a/link"]


def dockerfile(instruction: str) -> list[str]:
    text = (ROOT / "deploy/image/Dockerfile").read_text(encoding="utf-8").split("\nFROM ")[-1]
    return re.findall(rf"^{instruction} (.*)$", text, re.MULTILINE)


def test_the_dockerfile_makes_an_image_that_is_used_alike() -> None:
    lines = [shlex.split(line)[0].partition("=") for line in dockerfile("LABEL") + dockerfile("ENV")]
    said = {name: value for name, _, value in lines}
    assert oci.LABELS.items() <= said.items()
    assert {each: said[each] for each in said if each.startswith("NVIDIA_")} == {
        name: value for name, value in oci.ENVIRONMENT.items() if name.startswith("NVIDIA_")
    }
    assert dockerfile("USER") == [oci.USER] and dockerfile("EXPOSE") == [oci.PORT]
    assert json.loads(dockerfile("ENTRYPOINT")[0]) == oci.ENTRYPOINT
    assert json.loads(dockerfile("CMD")[0]) == oci.COMMAND


@pytest.mark.parametrize(("base", "status"), [("python:3.13-slim-trixie", 1), (f"python@sha256:{'0' * 64}", 0)])
def test_the_dockerfile_takes_no_base_without_a_digest(base: str, status: int) -> None:
    text = (ROOT / "deploy/image/Dockerfile").read_text(encoding="utf-8")
    assert re.findall(r"^ARG BASE.*$", text, re.MULTILINE) == ["ARG BASE", "ARG BASE"]
    (command,) = re.findall(r"^RUN (case .*)$", text, re.MULTILINE)
    done = subprocess.run(["sh", "-c", command], env={"BASE": base}, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert ("a tag can be moved" in done.stderr) == bool(status)
