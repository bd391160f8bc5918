"""How the files of a release were made, in the form of SLSA: from which commit and by which locks."""

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

from tools.image import build, lock, oci

BUILD_TYPE = "urn:podgpu:tools.release:1"


def predicate(version: str) -> dict[str, Any]:
    """The builder is whoever runs it; a workflow says which it is by BUILDER_ID and BUILD_URL."""
    locks = [
        {"name": name, "digest": {"sha256": hashlib.sha256((build.PROJECT / name).read_bytes()).hexdigest()}}
        for name in (lock.FILE, lock.DEVELOPMENT_FILE)
    ]
    source = {"name": "source", "digest": {"gitCommit": build.revision()}}
    found: dict[str, Any] = {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {"version": version},
            "resolvedDependencies": [source, *locks],
        },
        "runDetails": {"builder": {"id": os.environ.get("BUILDER_ID", "urn:podgpu:local")}},
    }
    if url := os.environ.get("BUILD_URL"):
        found["runDetails"]["metadata"] = {"invocationId": url}
    return found


def statement(files: Mapping[str, bytes], version: str) -> bytes:
    """About every file of the release."""
    subjects = [
        {"name": name, "digest": {"sha256": hashlib.sha256(data).hexdigest()}} for name, data in sorted(files.items())
    ]
    body = {
        "_type": oci.STATEMENT,
        "subject": subjects,
        "predicateType": build.PROVENANCE_PREDICATE,
        "predicate": predicate(version),
    }
    return (json.dumps(body, indent=2, sort_keys=True) + "\n").encode()
