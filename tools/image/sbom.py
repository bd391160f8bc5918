"""What is in the image, as SPDX: every Debian package and every wheel, with their hashes."""

import hashlib
import json
import re
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tools.image.debian import SUITE, Package
from tools.image.wheels import Wheel

PLACE = "usr/share/podgpu/sbom.spdx.json"
PREDICATE = "https://spdx.dev/Document"
IMAGE_ID = "SPDXRef-image"


def document(debs: Iterable[Package], wheels: Iterable[Wheel], version: str, epoch: int) -> str:
    parts = [*map(_deb, debs), *(_wheel(each) for each in wheels if each.name != "podgpu")]
    image = {
        "SPDXID": IMAGE_ID,
        "name": "podgpu",
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "primaryPackagePurpose": "CONTAINER",
    }
    relations = [_relation("SPDXRef-DOCUMENT", "DESCRIBES", IMAGE_ID)]
    relations += [_relation(IMAGE_ID, "CONTAINS", part["SPDXID"]) for part in parts]
    body: dict[str, Any] = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"podgpu-{version}",
        "creationInfo": {
            "created": datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": ["Tool: podgpu-tools.image"],
        },
        "packages": [image, *parts],
        "relationships": relations,
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    return json.dumps(body | {"documentNamespace": f"urn:uuid:{number}"}, indent=2, sort_keys=True) + "\n"


def _deb(package: Package) -> dict[str, Any]:
    url = f"pkg:deb/debian/{package.name}@{package.version}?arch={package.architecture}&distro=debian-{SUITE}"
    return _package(package.name, package.version, url.replace("+", "%2B"), package.path)


def _wheel(wheel: Wheel) -> dict[str, Any]:
    return _package(wheel.name, wheel.version, f"pkg:pypi/{wheel.name}@{wheel.version}", wheel.path)


def _package(name: str, version: str, url: str, path: Path) -> dict[str, Any]:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {
        "SPDXID": f"SPDXRef-{re.sub('[^A-Za-z0-9.-]+', '-', url.removeprefix('pkg:').partition('?')[0])}",
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": url}],
    }


def _relation(element: str, kind: str, related: str) -> dict[str, str]:
    return {"spdxElementId": element, "relationshipType": kind, "relatedSpdxElement": related}
