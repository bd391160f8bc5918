"""The wheel and the source package, built and installed as a user gets them."""

import re
import subprocess
import tarfile
import zipfile
from pathlib import Path
from urllib.request import urlopen

import pytest

from podgpu import __version__
from tests.package.clean import Clean
from tests.package.conftest import ROOT, build
from tests.patience import PATIENCE


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_holds_the_package_whole_and_nothing_else(wheel: Path) -> None:
    inside = contents(wheel)
    source = ROOT / "src"
    tracked = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    about = f"podgpu-{__version__}.dist-info/"
    assert {name for name in inside if not name.startswith(about)} == tracked
    assert {"podgpu/py.typed", "podgpu/sources/simulator/demo.yaml"} <= tracked
    assert inside[f"{about}licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()


def test_the_metadata_name_licence_python_and_the_extras(clean: Clean) -> None:
    metadata = clean.metadata.metadata
    assert (metadata["Version"], metadata["License-Expression"]) == (__version__, "Apache-2.0")
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata.get_all("Provides-Extra") == ["aiohttp", "otlp", "parquet"]
    assert metadata["Description-Content-Type"] == "text/markdown"


def test_the_source_package_makes_the_same_wheel(dist: Path, wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(dist / f"podgpu-{__version__}.tar.gz") as archive:
        names = archive.getnames()
        archive.extractall(tmp_path, filter="data")
    tree = tmp_path / f"podgpu-{__version__}"
    assert not any(re.search("(^|/)(tests|bench|tools)(/|$)", name) for name in names)
    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml"} <= {path.name for path in tree.iterdir()}
    build(tree, tmp_path / "again", "wheel")
    assert contents(tmp_path / "again" / wheel.name) == contents(wheel)


def test_both_programs_start(clean: Clean) -> None:
    assert clean.run("podgpu", "--version") == f"podgpu {__version__}\n"
    assert clean.run("kubectl-podgpu", "--version") == f"podgpu {__version__}\n"
    assert "kubectl podgpu" in clean.run("kubectl-podgpu", "--help")


def test_it_is_the_wheel_that_runs(clean: Clean) -> None:
    found = clean.run("python", "-c", "import podgpu, httptools; print(podgpu.__file__)").strip()
    assert Path(found).is_relative_to(clean.site)


@pytest.mark.parametrize("package", ["opentelemetry", "pytest", "tests"])
def test_what_was_not_asked_for_is_not_there(clean: Clean, package: str) -> None:
    command = f"import importlib.util; print(importlib.util.find_spec({package!r}))"
    assert clean.run("python", "-c", command) == "None\n"


def test_a_push_without_the_extra_says_what_to_install(clean: Clean) -> None:
    done = subprocess.run(
        [str(clean.bin / "podgpu"), "demo", "--web.listen-address=127.0.0.1:0"],
        env={**clean.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "run pip install 'podgpu[otlp]'" in done.stderr


def test_parquet_without_the_extra_says_what_to_install_before_a_store_is_asked(clean: Clean) -> None:
    line = ["report", "-o", "focus-parquet", "--prometheus.url=http://127.0.0.1:1"]
    done = subprocess.run(
        [str(clean.bin / "podgpu"), *line],
        env=clean.environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "run pip install 'podgpu[parquet]'" in done.stderr


def test_the_installed_demo_is_scraped(clean: Clean) -> None:
    command = [str(clean.bin / "podgpu"), "demo", "--web.listen-address=127.0.0.1:0"]
    with subprocess.Popen(
        command,
        cwd=clean.bin.parent,
        env=clean.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as demo:
        try:
            assert demo.stdout and demo.stdout.readline().startswith("DEMO")
            page = re.search(r"http://\S+", demo.stdout.readline())
            assert page
            with urlopen(f"{page[0]}metrics", timeout=PATIENCE) as answer:
                assert b"podgpu_build_info" in answer.read()
            with urlopen(page[0], timeout=PATIENCE) as answer:
                assert b"<html" in answer.read()
        finally:
            demo.terminate()
            demo.communicate(timeout=PATIENCE)
    assert demo.returncode == 0
