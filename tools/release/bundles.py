"""The archives of a release: the chart, the manifests, the dashboards and the kubectl plugin."""

import gzip
from pathlib import Path

import yaml

from tools.image import build, lock
from tools.image.tree import Tree, file, layer

DEPLOY = build.PROJECT / "deploy"
CHART = DEPLOY / "helm" / "podgpu"
DIGEST = '  digest: ""\n'
LAUNCHER = """\
#!/bin/sh
# podgpu as a kubectl plugin. At its first use it installs podgpu {version} into a folder of its own.
set -eu
home=${{XDG_DATA_HOME:-$HOME/.local/share}}/podgpu/{version}
if [ ! -e "$home/ready" ]; then
    here=$(dirname "$(readlink -f "$0")")
    python=${{PODGPU_PYTHON:-python3}}
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {{
        echo "podgpu needs Python 3.11 or newer; set PODGPU_PYTHON to it" >&2
        exit 2
    }}
    echo "installing podgpu {version} into $home" >&2
    "$python" -m venv --clear "$home"
    pip="$home/bin/python -m pip --quiet --disable-pip-version-check"
    $pip install --require-hashes -r "$here/requirements.lock"
    $pip install --no-deps "$here/{wheel}"
    touch "$home/ready"
fi
exec "$home/bin/kubectl-podgpu" "$@"
"""


def packed(tree: Tree, epoch: int) -> bytes:
    return gzip.compress(layer(tree, epoch), mtime=0)


def chart(image: str, digest: str) -> Tree:
    """The chart, with the image that it was released with. `image` is empty, or REGISTRY/NAME."""
    ignored = (CHART / ".helmignore").read_text(encoding="utf-8").split()
    found = {
        f"podgpu/{path.relative_to(CHART)}": file(path.read_bytes())
        for path in sorted(CHART.rglob("*"))
        if path.is_file() and not any(path.match(pattern) for pattern in ignored)
    }
    values = found["podgpu/values.yaml"].data.decode()
    if values.count(DIGEST) != 1:
        raise SystemExit(f"{CHART}/values.yaml has not exactly one empty digest")
    registry, _, repository = image.rpartition("/")
    values = values.replace(DIGEST, f'  digest: "{digest}"\n')
    if image:
        values = values.replace('  registry: ""\n', f'  registry: "{registry}"\n', 1)
        values = values.replace("  repository: podgpu\n", f"  repository: {repository}\n", 1)
    about = yaml.safe_load(found["podgpu/Chart.yaml"].data)
    named = f"{image or 'podgpu'}:{about['appVersion']}@{digest}"
    about["annotations"]["artifacthub.io/images"] = yaml.safe_dump([{"name": "podgpu", "image": named}])
    return found | {
        "podgpu/values.yaml": file(values),
        "podgpu/Chart.yaml": file(yaml.safe_dump(about, sort_keys=False)),
    }


def manifests(version: str, image: str, digest: str) -> Tree:
    """Manifests with the image's digest, rules for Prometheus, and the unit for systemd."""
    named, pinned = f"podgpu:{version}", f"{image or 'podgpu'}:{version}@{digest}"
    found: Tree = {}
    for folder in ("manifests", "rules", "opencost", "systemd"):
        for path in sorted((DEPLOY / folder).iterdir()):
            text = path.read_text(encoding="utf-8")
            found[f"podgpu-{version}/{folder}/{path.name}"] = file(text.replace(f"image: {named}", f"image: {pinned}"))
    return found


def dashboards(version: str) -> Tree:
    folder = DEPLOY / "dashboards"
    return {f"podgpu-{version}/{path.name}": file(path.read_bytes()) for path in sorted(folder.glob("*.json"))}


def plugin(version: str, wheel: Path) -> Tree:
    """For krew, which unpacks an archive and links a program. Python itself is the user's."""
    needed = lock.needed((build.PROJECT / lock.FILE).read_text(encoding="utf-8"))
    return {
        "kubectl-podgpu": file(LAUNCHER.format(version=version, wheel=wheel.name), executable=True),
        "requirements.lock": file(needed),
        wheel.name: file(wheel.read_bytes()),
        "LICENSE": file((build.PROJECT / "LICENSE").read_bytes()),
    }


def krew(version: str, archive: str, digest: str, base: str) -> str:
    """`base` is where the release's files will be, `digest` that of the plugin's archive."""
    about = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "podgpu"},
        "spec": {
            "version": f"v{version}",
            "shortDescription": "Show which pod uses which share of which GPU",
            "description": "Shows GPUs, the pods on them, what each uses and how that is known, idle GPUs and bills.\n",
            "caveats": "Needs Python 3.11 or newer, and installs podgpu from PyPI at its first use.\n",
            "platforms": [
                {
                    "selector": {"matchExpressions": [{"key": "os", "operator": "In", "values": ["linux", "darwin"]}]},
                    "uri": f"{base}/{archive}",
                    "sha256": digest,
                    "bin": "kubectl-podgpu",
                }
            ],
        },
    }
    return yaml.safe_dump(about, sort_keys=False, width=120)
