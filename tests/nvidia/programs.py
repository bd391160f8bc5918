"""NVIDIA's own programs, started over a driver that is made up: its library, its tools and its files in /proc."""

import os
import signal
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.fakenvml.build import build
from tests.fakenvml.fake_node import FakeNode
from tests.kubernetes.cluster.control_plane import NODE
from tests.kubernetes.cluster.programs import environment, run

VARIABLES = ("PODGPU_TEST_DEVICE_PLUGIN", "PODGPU_TEST_DRA_DRIVER")
# Read at once: no test keeps the caller's variables.
PLUGIN, DRIVER = (os.environ.get(name, "") for name in VARIABLES)
ROOT = Path("/run/nvidia/driver")  # on the node, as the GPU Operator has it
LIBRARY = ROOT / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
SCRIPT = ROOT.parent / "script"
LOGS = Path("/var/log")
MPS = ROOT.parent / "mps"
_STOP_SECONDS = 20.0
_PLUGIN = "nvidia-device-plugin"
_MAJORS = {"nvidia-frontend": 195, "nvidia-caps": 237}  # of the driver's device files
# Programs of the driver that they start. These stand in: nvidia-smi sets a mode and says nothing, and the control of
# MPS tells how many of the threads its clients may have.
_TOOLS = {"nvidia-smi": "", "nvidia-cuda-mps-control": "echo 100.0"}


def furnish(node: FakeNode) -> None:
    """Lay out a driver's folder, and play these cards."""
    LIBRARY.parent.mkdir(parents=True, exist_ok=True)
    (ROOT / "dev").mkdir(exist_ok=True)
    tools = ROOT / "usr/bin"
    tools.mkdir(exist_ok=True)
    for name, command in _TOOLS.items():
        (tools / name).write_text(f"#!/bin/sh\n{command}\n")
        (tools / name).chmod(0o755)
    build(ROOT.parent / "build").replace(LIBRARY)  # not over one that is mapped
    cuda = LIBRARY.with_name(f"libcuda.so.{node.driver}")  # the DRA driver looks for it to know the driver's version
    cuda.touch()
    node.write(SCRIPT)
    _show_capabilities(node)


def _show_capabilities(node: FakeNode) -> None:
    """Cards have device files. So have MIG instances, of which the driver tells in /proc."""
    folder = ROOT.parent / "proc"
    minors = ["config 1", "monitor 2"]
    for number, gpu in enumerate(node.gpus):
        _make_device(f"nvidia{number}", _MAJORS["nvidia-frontend"], number)
        for mig in gpu.migs:
            instance = f"gi{mig.gpu_instance}"
            for name in (f"{instance}/access", f"{instance}/ci{mig.compute_instance}/access"):
                minor = len(minors) + 1
                minors.append(f"gpu{number}/{name} {minor}")
                capability = folder / f"nvidia/capabilities/gpu{number}/mig/{name}"
                capability.parent.mkdir(parents=True, exist_ok=True)
                capability.write_text(f"DeviceFileMinor: {minor}\nDeviceFileMode: 292\nDeviceFileModify: 1\n")
                _make_device(f"nvidia-caps/nvidia-cap{minor}", _MAJORS["nvidia-caps"], minor)
    (folder / "nvidia-caps").mkdir(parents=True, exist_ok=True)
    (folder / "nvidia-caps/mig-minors").write_text("\n".join(minors) + "\n")
    if not Path("/proc/driver/nvidia-caps").exists():
        run("mount", "--bind", str(folder), "/proc/driver")
        majors = "\n".join(f"{major} {name}" for name, major in _MAJORS.items())
        devices = Path("/proc/devices").read_text().replace("\n\nBlock", f"\n{majors}\n\nBlock")
        (folder / "devices").write_text(devices)
        run("mount", "--bind", str(folder / "devices"), "/proc/devices")


def _make_device(name: str, major: int, minor: int) -> None:
    """A device file that nobody opens: there is no driver behind it."""
    path = ROOT / "dev" / name
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(major, minor))


@contextmanager
def device_plugin(*words: str, config: str) -> Iterator[None]:
    file = ROOT.parent / "device-plugin.yaml"
    file.write_text(config)
    options = [f"--config-file={file}", f"--driver-root-ctr-path={ROOT}", f"--mps-root={MPS}", *words]
    with _started(PLUGIN, _PLUGIN, options):
        yield


def restart_device_plugin() -> None:
    """Have it look at the cards again, as after a restart: all are healthy then."""
    os.kill(int((LOGS / f"{_PLUGIN}.pid").read_text()), signal.SIGHUP)


@contextmanager
def dra_driver(*words: str) -> Iterator[None]:
    options = [
        f"--node-name={NODE}",
        f"--kubeconfig={os.environ['KUBECONFIG']}",
        f"--nvidia-driver-root={ROOT}",
        f"--container-driver-root={ROOT}",
        "--nvidia-cdi-hook-path=/bin/true",
        "--cdi-root=/run/cdi",
        "--image-name=none",
        *words,
    ]
    with _started(DRIVER, "gpu-kubelet-plugin", options):
        yield


@contextmanager
def _started(program: str, name: str, words: Sequence[str]) -> Iterator[None]:
    own = environment()
    variables: Mapping[str, str] = {
        **own,
        "PATH": f"{ROOT / 'usr/bin'}:{own['PATH']}",
        "FAKENVML_SCRIPT": str(SCRIPT),
    }
    with (LOGS / f"{name}.log").open("ab") as log:
        process = subprocess.Popen([program, *words], env=variables, stdout=log, stderr=log)
    (LOGS / f"{name}.pid").write_text(str(process.pid))
    try:
        yield
        assert process.poll() is None, (
            f"{name} ended; its log is {log.name}, and ends with:\n{Path(log.name).read_text(errors='replace')[-2000:]}"
        )
    finally:
        process.terminate()
        process.wait(_STOP_SECONDS)
