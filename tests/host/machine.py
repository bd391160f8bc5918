"""The state files of a made-up machine."""

import json
from pathlib import Path
from typing import Any


def write(root: Path, name: str, text: str | bytes) -> Path:
    path = root / name.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def write_docker(root: Path, container_id: str, name: str, folder: str = "/var/lib/docker") -> Path:
    """A container's file, with some of what Docker writes besides the name."""
    config = {"State": {"Running": True, "Pid": 7}, "ID": container_id, "Name": name, "Driver": "overlay2"}
    return write(root, f"{folder}/containers/{container_id}/config.v2.json", json.dumps(config))


def write_podman(root: Path, *containers: dict[str, Any], file: str = "containers.json") -> Path:
    return write(root, f"/var/lib/containers/storage/overlay-containers/{file}", json.dumps(containers))


def place_docker(root: Path, container_id: str, parent: str) -> Path:
    """What Docker writes about a container that was given a parent for its cgroup."""
    config = {"CgroupParent": parent, "Memory": 0}
    return write(root, f"/var/lib/docker/containers/{container_id}/hostconfig.json", json.dumps(config))


def place_podman(root: Path, container_id: str, path: str) -> Path:
    """The bundle that Podman gives to the runtime."""
    bundle = {"ociVersion": "1.2.0", "linux": {"cgroupsPath": path, "namespaces": []}}
    folder = "/var/lib/containers/storage/overlay-containers"
    return write(root, f"{folder}/{container_id}/userdata/config.json", json.dumps(bundle))


def write_subordinates(root: Path, *lines: str) -> Path:
    return write(root, "/etc/subuid", "".join(f"{line}\n" for line in lines))


def write_users(root: Path, /, **numbers: int) -> Path:
    lines = [f"{name}:x:{number}:{number}::/home/{name}:/bin/sh\n" for name, number in numbers.items()]
    return write(root, "/etc/passwd", "".join(lines))
