"""Layers and a configuration become an OCI archive: one file that engines, registries' tools and containerd read."""

import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tools.image.tree import Tree, file, layer

_TYPE = "application/vnd.oci.image"
STATEMENT = "https://in-toto.io/Statement/v1"

ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/bin",
    "SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt",
    # The NVIDIA runtime injects the driver's library and devices where it finds these.
    "NVIDIA_VISIBLE_DEVICES": "all",
    "NVIDIA_DRIVER_CAPABILITIES": "utility",
}
ENTRYPOINT = ["/usr/bin/podgpu"]
COMMAND = ["agent"]
USER = "65534:65534"
PORT = "19400/tcp"
LABELS: Mapping[str, str] = {
    "org.opencontainers.image.title": "podgpu",
    "org.opencontainers.image.description": "Which pod uses which share of which GPU, and how do you know?",
    "org.opencontainers.image.licenses": "Apache-2.0",
}


@dataclass(frozen=True)
class Facts:
    """What is said about the image. `revision` is empty where there is no repository."""

    version: str
    architecture: str
    epoch: int
    revision: str = ""

    @property
    def created(self) -> str:
        return datetime.fromtimestamp(self.epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    @property
    def labels(self) -> dict[str, str]:
        revision = {"org.opencontainers.image.revision": self.revision} if self.revision else {}
        about = {
            "org.opencontainers.image.version": self.version,
            "org.opencontainers.image.created": self.created,
        }
        return {**LABELS, **about, **revision}


@dataclass(frozen=True)
class Image:
    """An image, statements about it, or an index: what it consists of by digest, and how an index refers to it."""

    facts: Facts
    blobs: Mapping[str, bytes]
    descriptor: Mapping[str, Any]


def image(trees: Sequence[Tree], facts: Facts) -> Image:
    layers = [layer(tree, facts.epoch) for tree in trees]
    packed = [gzip.compress(each, compresslevel=6, mtime=0) for each in layers]
    config = _json(_config([_digest(each) for each in layers], facts))
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": f"{_TYPE}.manifest.v1+json",
            "config": _descriptor("config.v1+json", config),
            "layers": [_descriptor("layer.v1.tar+gzip", each) for each in packed],
            "annotations": facts.labels,
        }
    )
    descriptor = {
        **_descriptor("manifest.v1+json", manifest),
        "platform": {"architecture": facts.architecture, "os": "linux"},
    }
    return Image(facts, {_digest(each): each for each in (*packed, config, manifest)}, descriptor)


def attestation(about: Image, predicates: Mapping[str, Any]) -> Image:
    """Statements about an image, by the type of their predicate, as buildx puts them beside it in an index."""
    digest = about.descriptor["digest"]
    subject = [{"name": "podgpu", "digest": {"sha256": digest[7:]}}]
    statements = {
        kind: _json({"_type": STATEMENT, "predicateType": kind, "subject": subject, "predicate": predicate})
        for kind, predicate in predicates.items()
    }
    unknown = {"architecture": "unknown", "os": "unknown"}
    layers = [_digest(each) for each in statements.values()]
    config = _json({**unknown, "config": {}, "rootfs": {"type": "layers", "diff_ids": layers}})
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": f"{_TYPE}.manifest.v1+json",
            "config": _descriptor("config.v1+json", config),
            "layers": [
                {
                    "mediaType": "application/vnd.in-toto+json",
                    "digest": _digest(statement),
                    "size": len(statement),
                    "annotations": {"in-toto.io/predicate-type": kind},
                }
                for kind, statement in statements.items()
            ],
        }
    )
    descriptor = {
        **_descriptor("manifest.v1+json", manifest),
        "platform": unknown,
        "annotations": {
            "vnd.docker.reference.digest": digest,
            "vnd.docker.reference.type": "attestation-manifest",
        },
    }
    blobs = {_digest(each): each for each in (*statements.values(), config, manifest)}
    return Image(about.facts, blobs, descriptor)


def index(images: Sequence[Image]) -> Image:
    """Several images, and statements about them, under one digest."""
    data = _json(_index([each.descriptor for each in images]))
    blobs = {digest: blob for each in images for digest, blob in each.blobs.items()}
    return Image(images[0].facts, blobs | {_digest(data): data}, _descriptor("index.v1+json", data))


def archive(image: Image) -> bytes:
    files = {f"blobs/sha256/{digest[7:]}": file(blob) for digest, blob in image.blobs.items()}
    files["oci-layout"] = file(_json({"imageLayoutVersion": "1.0.0"}))
    files["index.json"] = file(_json(_index([{**image.descriptor, "annotations": _names(image.facts)}])))
    return layer(files, image.facts.epoch)


def _config(layers: Sequence[str], facts: Facts) -> dict[str, Any]:
    return {
        "created": facts.created,
        "architecture": facts.architecture,
        "os": "linux",
        "config": {
            "User": USER,
            "ExposedPorts": {PORT: {}},
            "Env": [f"{name}={value}" for name, value in ENVIRONMENT.items()],
            "Entrypoint": ENTRYPOINT,
            "Cmd": COMMAND,
            "WorkingDir": "/",
            "Labels": facts.labels,
        },
        "rootfs": {"type": "layers", "diff_ids": list(layers)},
    }


def _index(manifests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"schemaVersion": 2, "mediaType": f"{_TYPE}.index.v1+json", "manifests": list(manifests)}


def _names(facts: Facts) -> dict[str, str]:
    return {
        "org.opencontainers.image.ref.name": facts.version,
        "io.containerd.image.name": f"docker.io/library/podgpu:{facts.version}",
    }


def _descriptor(kind: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": f"{_TYPE}.{kind}", "digest": _digest(data), "size": len(data)}


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
