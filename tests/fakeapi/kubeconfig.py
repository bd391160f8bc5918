"""A kubeconfig for the fake API server, with a login by a plugin, as clouds have it."""

import shutil
from pathlib import Path

import pytest
import yaml

from tests.fakeapi.server import FakeApi

TOKEN = "token-of-the-plugin"


def kubectl() -> str:
    found = shutil.which("kubectl")
    if found is None:
        pytest.skip("kubectl is not installed")
    return found


def kubeconfig(folder: Path, fake: FakeApi, ca: Path | None = None, *, plugin: str | None = None) -> Path:
    """Write one with the contexts `real`, whose user asks a plugin for the token, and `other`."""
    folder.mkdir(exist_ok=True)
    cluster = {"server": fake.url} | ({"certificate-authority": str(ca)} if ca else {})
    login = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": plugin or str(_plugin(folder))}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "real",
        "clusters": [{"name": "here", "cluster": cluster}],
        "users": [{"name": "me", "user": {"exec": {**login, "interactiveMode": "Never"}}}],
        "contexts": [
            {"name": "real", "context": {"cluster": "here", "user": "me"}},
            {"name": "other", "context": {"cluster": "here", "user": "me"}},
        ],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(document))
    return path


def _plugin(folder: Path) -> Path:
    path = folder / "login"
    kind = '"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential"'
    path.write_text(f'#!/bin/sh\necho \'{{{kind}, "status": {{"token": "{TOKEN}"}}}}\'\n')
    path.chmod(0o755)
    return path
