"""From a project's checkout to an image: fetch what it is made of, then put it together, the same way every time."""

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools.image import bytecode, debian, oci, sbom, wheels
from tools.image.tree import Tree, file

PROJECT = Path(__file__).resolve().parent.parent.parent
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
ARCHITECTURES = tuple(_ARCHITECTURES.values())
PROVENANCE_PREDICATE = "https://slsa.dev/provenance/v1"


@dataclass(frozen=True)
class Parts:
    """Folders with what an image is made of. `own_debs` are for this machine: its Python compiles the modules."""

    architecture: str
    debs: Path
    wheels: Path
    own_debs: Path


@dataclass(frozen=True)
class Image:
    oci: oci.Image
    sbom: str

    @property
    def archive(self) -> bytes:
        return oci.archive(self.oci)


def own_architecture() -> str:
    """The architecture of this machine, as Debian and OCI call it."""
    return _ARCHITECTURES[platform.machine()]


def fetch(folder: Path, architectures: Sequence[str], mirror: str, security: str) -> list[Parts]:
    """Download all at once. Nothing of another architecture is run, so no emulator is needed."""
    debs = {each: folder / each / "debs" for each in {*architectures, own_architecture()}}
    own = debs[own_architecture()]
    parts = [Parts(each, debs[each], folder / each / "wheels", own) for each in architectures]
    with ThreadPoolExecutor() as pool:
        tasks = [pool.submit(debian.fetch, place, each, mirror, security) for each, place in debs.items()]
        tasks += [pool.submit(wheels.fetch, each.wheels, each.architecture, PROJECT) for each in parts]
    for task in tasks:
        task.result()
    return parts


def assemble(parts: Parts, epoch: int, revision: str = "") -> Image:
    packages, chosen = debian.packages(parts.debs), wheels.wheels(parts.wheels)
    version = next(each.version for each in chosen if each.name == "podgpu")
    lower, upper = debian.tree(packages), wheels.tree(chosen)
    caches = bytecode.compiled(lower | upper, _compiler(parts))
    text = sbom.document(packages, chosen, version, epoch)
    lower |= {path: entry for path, entry in caches.items() if not path.startswith(wheels.SITE)}
    upper |= {path: entry for path, entry in caches.items() if path.startswith(wheels.SITE)}
    upper |= {sbom.PLACE: file(text)}
    facts = oci.Facts(version, parts.architecture, epoch, revision)
    return Image(oci=oci.image([lower, upper], facts), sbom=text)


def together(images: Sequence[Image], provenance: object = None) -> oci.Image:
    """One index for several architectures. With `provenance` it also says what each holds and how it was made."""
    parts = [each.oci for each in images]
    if provenance is not None:
        parts += [
            oci.attestation(each.oci, {sbom.PREDICATE: json.loads(each.sbom), PROVENANCE_PREDICATE: provenance})
            for each in images
        ]
    return oci.index(parts)


def _compiler(parts: Parts) -> Tree | None:
    foreign = parts.debs != parts.own_debs
    return debian.tree(debian.packages(parts.own_debs)) if foreign else None


def epoch() -> int:
    """SOURCE_DATE_EPOCH, else the time of the last commit."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct") or 0)


def revision() -> str:
    return _git("rev-parse", "HEAD")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=PROJECT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
