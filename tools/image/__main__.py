"""Builds the image, or prints the part of the lock that it needs."""

import argparse
import hashlib
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.image import build, debian, lock


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.image", description=__doc__)
    commands = parser.add_subparsers(required=True)
    builder = commands.add_parser("build", help="write the archive and its SBOM")
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
    epoch, revision = build.epoch(), build.revision()
    os.environ["SOURCE_DATE_EPOCH"] = str(epoch)  # for the wheel that pip builds
    with tempfile.TemporaryDirectory() as folder:
        parts = build.fetch(Path(folder), options.mirror, options.security)
        image = build.assemble(parts, epoch, revision)
        if options.twice and build.assemble(parts, epoch, revision) != image:
            sys.stderr.write("two images of the same parts differ\n")
            return 1
    options.output.mkdir(parents=True, exist_ok=True)
    stem = options.output / f"podgpu-{build.architecture()}"
    stem.with_suffix(".oci.tar").write_bytes(image.archive)
    stem.with_suffix(".cdx.json").write_text(image.sbom, encoding="utf-8")
    digest = hashlib.sha256(image.archive).hexdigest()
    size = len(image.archive) / 1e6
    sys.stdout.write(f"{stem.with_suffix('.oci.tar')}  {size:.1f} MB  sha256:{digest}\n")
    return 0


def _lock(options: argparse.Namespace) -> int:
    text = (build.PROJECT / "requirements.lock").read_text(encoding="utf-8")
    sys.stdout.write(lock.needed(text, for_build=options.build))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
