"""What a release is made of. `make test-release` builds a whole one and starts each of its files."""

import gzip
import io
import tarfile
from pathlib import Path

import pytest
import yaml

from podgpu import __version__
from tools.image import oci, tree
from tools.release import bundles
from tools.release.__main__ import main
from tools.release.notes import notes

DIGEST = "sha256:" + 64 * "a"
CHANGELOG = """# Changelog

## Unreleased

* New.

## [0.2.0] - 2026-01-01

### Added

* Second.

## 0.1.0

* First.
"""


@pytest.mark.parametrize(
    ("version", "wanted"), [("0.2.0", "### Added\n\n* Second."), ("0.1.0", "* First."), ("0.3.0", "* New.")]
)
def test_the_notes_are_the_section_of_the_version(version: str, wanted: str) -> None:
    assert notes(CHANGELOG, version) == f"# podgpu {version}\n\n{wanted}\n"


def test_a_version_that_has_no_section_says_what_to_do() -> None:
    with pytest.raises(SystemExit, match="write what has changed"):
        notes("# Changelog\n", "0.3.0")


def test_another_version_than_that_of_the_source_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["9.9.9"])
    assert f"this is {__version__}" in capsys.readouterr().err


def test_a_released_chart_has_the_image_by_name_and_digest() -> None:
    found = bundles.chart("registry.example/team/podgpu", DIGEST)
    image = yaml.safe_load(found["podgpu/values.yaml"].data)["image"]
    assert (image["registry"], image["repository"], image["digest"]) == (
        "registry.example/team",
        "podgpu",
        DIGEST,
    )
    about = yaml.safe_load(found["podgpu/Chart.yaml"].data)
    (listed,) = yaml.safe_load(about["annotations"]["artifacthub.io/images"])
    assert listed["image"] == f"registry.example/team/podgpu:{about['appVersion']}@{DIGEST}"


def test_the_same_files_give_the_same_bytes() -> None:
    first, second = (bundles.packed(bundles.dashboards("1.0.0"), 0) for _ in range(2))
    assert first == second
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(first))) as archive:
        assert {member.mtime for member in archive} == {0}


def test_the_plugin_names_its_wheel_and_its_archive(tmp_path: Path) -> None:
    wheel = tmp_path / "podgpu-1.0.0-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    found = bundles.plugin("1.0.0", wheel)
    assert b"podgpu-1.0.0-py3-none-any.whl" in found["kubectl-podgpu"].data
    assert b"--hash=sha256:" in found["requirements.lock"].data
    krew = yaml.safe_load(bundles.krew("1.0.0", "plugin.tar.gz", "cafe", "https://releases.example"))
    (platform,) = krew["spec"]["platforms"]
    assert (platform["uri"], platform["sha256"]) == ("https://releases.example/plugin.tar.gz", "cafe")


def test_statements_stand_beside_the_image_that_they_are_about() -> None:
    image = oci.image([{"a": tree.file("x")}], oci.Facts("1.0.0", "amd64", 0))
    about = oci.attestation(image, {"https://example/predicate": {"made": "here"}})
    index = oci.index([image, about])
    assert index.blobs.keys() > image.blobs.keys() | about.blobs.keys()
    assert about.descriptor["annotations"]["vnd.docker.reference.digest"] == image.descriptor["digest"]
