"""From a project's checkout to an image: fetch what it is made of, then put it together, the same way every time."""

import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.image import bytecode, debian, oci, sbom, wheels
from tools.image.tree import file

PROJECT = Path(__file__).resolve().parent.parent.parent
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Parts:
    """Folders with what an image is made of."""

    debs: Path
    wheels: Path


@dataclass(frozen=True)
class Image:
    archive: bytes
    sbom: str


def architecture() -> str:
    """The architecture of this machine, and so of the image, as Debian and OCI call it."""
    return _ARCHITECTURES[platform.machine()]


def fetch(folder: Path, mirror: str, security: str) -> Parts:
    parts = Parts(debs=folder / "debs", wheels=folder / "wheels")
    debian.fetch(parts.debs, architecture(), mirror, security)
    wheels.fetch(parts.wheels, architecture(), PROJECT)
    return parts


def assemble(parts: Parts, epoch: int, revision: str = "") -> Image:
    packages, chosen = debian.packages(parts.debs), wheels.wheels(parts.wheels)
    version = next(each.version for each in chosen if each.name == "podgpu")
    lower, upper = debian.tree(packages), wheels.tree(chosen)
    caches = bytecode.compiled(lower | upper)
    text = sbom.document(packages, chosen, version, epoch)
    lower |= {path: entry for path, entry in caches.items() if not path.startswith(wheels.SITE)}
    upper |= {path: entry for path, entry in caches.items() if path.startswith(wheels.SITE)}
    upper |= {sbom.PLACE: file(text)}
    facts = oci.Facts(version, architecture(), epoch, revision)
    return Image(archive=oci.archive([lower, upper], facts), sbom=text)


def epoch() -> int:
    """SOURCE_DATE_EPOCH, else the time of the last commit."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct") or 0)


def revision() -> str:
    return _git("rev-parse", "HEAD")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=PROJECT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
