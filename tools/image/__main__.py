"""Builds the image, or prints the part of the lock that it needs."""

import argparse
import hashlib
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.image import build, debian, lock, oci


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.image", description=__doc__)
    commands = parser.add_subparsers(required=True)
    builder = commands.add_parser("build", help="write the archive and its SBOM")
    builder.add_argument("--arch", nargs="+", choices=build.ARCHITECTURES, default=[build.own_architecture()])
    builder.add_argument("--output", type=Path, default=build.PROJECT / "build" / "image")
    builder.add_argument("--mirror", default=debian.MIRROR, help="Debian, or a snapshot of it")
    builder.add_argument("--security", default=debian.SECURITY)
    builder.add_argument("--twice", action="store_true", help="put it together twice; differing bytes fail")
    builder.set_defaults(run=_build)
    locker = commands.add_parser("lock", help="print the locked requirements of the runtime")
    locker.add_argument("--build", action="store_true", help="those of the tool that builds the wheel")
    locker.set_defaults(run=_lock)
    options = parser.parse_args(arguments)
    return int(options.run(options))


def _build(options: argparse.Namespace) -> int:
    os.environ["SOURCE_DATE_EPOCH"] = str(build.epoch())  # for the wheel that pip builds
    options.output.mkdir(parents=True, exist_ok=True)
    images: list[build.Image] = []
    with tempfile.TemporaryDirectory() as folder:
        for parts in build.fetch(Path(folder), options.arch, options.mirror, options.security):
            images.append(build.assemble(parts, build.epoch(), build.revision()))
            if options.twice and build.assemble(parts, build.epoch(), build.revision()) != images[-1]:
                sys.stderr.write("two images of the same parts differ\n")
                return 1
            stem = options.output / f"podgpu-{parts.architecture}"
            stem.with_suffix(".spdx.json").write_text(images[-1].sbom, encoding="utf-8")
            _write(stem.with_suffix(".oci.tar"), images[-1].archive)
    if len(images) > 1:
        _write(options.output / "podgpu.oci.tar", oci.archive(build.together(images)))
    return 0


def _write(path: Path, archive: bytes) -> None:
    path.write_bytes(archive)
    digest = hashlib.sha256(archive).hexdigest()
    sys.stdout.write(f"{path}  {len(archive) / 1e6:.1f} MB  sha256:{digest}\n")


def _lock(options: argparse.Namespace) -> int:
    name = lock.DEVELOPMENT_FILE if options.build else lock.FILE
    text = (build.PROJECT / name).read_text(encoding="utf-8")
    sys.stdout.write(lock.needed(text, for_build=options.build))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
