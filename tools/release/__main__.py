"""Build everything that a release publishes, and print what it is. Nothing is uploaded."""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from podgpu import __version__
from tools.image import build, debian, oci
from tools.release import bundles, provenance
from tools.release.notes import notes

Files = dict[str, bytes]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--output", type=Path, default=build.PROJECT / "dist")
    parser.add_argument("--arch", nargs="+", choices=build.ARCHITECTURES, default=list(build.ARCHITECTURES))
    parser.add_argument("--image", default="", help="REGISTRY/NAME that the image will have")
    parser.add_argument("--base", default="", help="URL of the folder that the files will be in, for krew")
    parser.add_argument("--mirror", default=debian.MIRROR, help="Debian, or a snapshot of it")
    parser.add_argument("--security", default=debian.SECURITY)
    parser.add_argument("--twice", action="store_true", help="build it twice; differing bytes fail")
    options = parser.parse_args(arguments)
    if options.version != __version__:
        parser.error(f"this is {__version__}: set __version__ in src/podgpu/__init__.py, then run make chart")
    os.environ["SOURCE_DATE_EPOCH"] = str(build.epoch())  # for hatchling and pip
    with tempfile.TemporaryDirectory() as folder:
        parts = build.fetch(Path(folder), options.arch, options.mirror, options.security)
        files = _build(options, parts)
        if options.twice:
            again = _build(options, parts)
            if differing := sorted(name for name in files if files[name] != again.get(name)):
                sys.stderr.write(f"two builds differ in {', '.join(differing)}\n")
                return 1
    _write(options.output, files)
    return 0


def _build(options: argparse.Namespace, parts: Sequence[build.Parts]) -> Files:
    version, epoch = options.version, build.epoch()
    images = [build.assemble(part, epoch, build.revision()) for part in parts]
    index = build.together(images, provenance.predicate(version))
    digest = index.descriptor["digest"]
    files: Files = {f"podgpu-{version}-image.oci.tar": oci.archive(index)}
    for part, image in zip(parts, images, strict=True):
        files[f"podgpu-{version}-image-{part.architecture}.spdx.json"] = image.sbom.encode()
    plugin = f"kubectl-podgpu-{version}.tar.gz"
    with tempfile.TemporaryDirectory() as name:
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-d", name],
            cwd=build.PROJECT,
            check=True,
            stdout=sys.stderr,
        )
        for path in Path(name).iterdir():
            files[path.name] = path.read_bytes()
        (wheel,) = Path(name).glob("*.whl")
        files[plugin] = bundles.packed(bundles.plugin(version, wheel), epoch)
    # Helm's name for a chart's package is that of the source package: the chart has a folder of its own.
    files[f"chart/podgpu-{version}.tgz"] = bundles.packed(bundles.chart(options.image, digest), epoch)
    files[f"podgpu-{version}-manifests.tar.gz"] = bundles.packed(
        bundles.manifests(version, options.image, digest), epoch
    )
    files[f"podgpu-{version}-dashboards.tar.gz"] = bundles.packed(bundles.dashboards(version), epoch)
    files["k9s-plugins.yaml"] = (bundles.DEPLOY / "k9s" / "plugins.yaml").read_bytes()
    files["podgpu.krew.yaml"] = bundles.krew(version, plugin, _sha256(files[plugin]), options.base).encode()
    changelog = (build.PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    files["RELEASE-NOTES.md"] = notes(changelog, version).encode()
    files[f"podgpu-{version}.provenance.json"] = provenance.statement(files, version)
    return files


def _write(output: Path, files: Files) -> None:
    sums = "".join(f"{_sha256(data)}  {name}\n" for name, data in sorted(files.items()))
    for name, data in {**files, "SHA256SUMS": sums.encode()}.items():
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        (output / name).write_bytes(data)
    width = max(map(len, files))
    for name, data in sorted(files.items()):
        sys.stdout.write(f"{name:<{width}}  {len(data) / 1e6:8.2f} MB  {_sha256(data)}\n")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
