"""What is in the image, as CycloneDX: every Debian package and every wheel, with their hashes."""

import hashlib
import json
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tools.image.debian import SUITE, Package
from tools.image.wheels import Wheel

PLACE = "usr/share/podgpu/sbom.cdx.json"


def document(debs: Iterable[Package], wheels: Iterable[Wheel], version: str, epoch: int) -> str:
    components = [*map(_deb, debs), *(_wheel(each) for each in wheels if each.name != "podgpu")]
    body: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {"type": "container", "bom-ref": "podgpu", "name": "podgpu", "version": version},
        },
        "components": components,
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    return json.dumps(body | {"serialNumber": f"urn:uuid:{number}"}, indent=2, sort_keys=True) + "\n"


def _deb(package: Package) -> dict[str, Any]:
    url = f"pkg:deb/debian/{package.name}@{package.version}?arch={package.architecture}&distro=debian-{SUITE}"
    return _component(package.name, package.version, url.replace("+", "%2B"), package.path)


def _wheel(wheel: Wheel) -> dict[str, Any]:
    return _component(wheel.name, wheel.version, f"pkg:pypi/{wheel.name}@{wheel.version}", wheel.path)


def _component(name: str, version: str, url: str, path: Path) -> dict[str, Any]:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {
        "type": "library",
        "bom-ref": url,
        "name": name,
        "version": version,
        "purl": url,
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }
