"""The image whose one process holds a pod's namespaces open, made here since no registry is asked."""

import subprocess
from pathlib import Path

from tools.image import build, oci
from tools.image.tree import file

VERSION = "pause"
NAME = f"docker.io/library/podgpu:{VERSION}"
_SOURCE = """
#include <signal.h>
#include <unistd.h>
static void stop(int number) { _exit(0); (void)number; }
int main(void) { signal(SIGTERM, stop); signal(SIGINT, stop); for (;;) pause(); }
"""


def archive(folder: Path) -> Path:
    """Compile the process and pack it the way podgpu's own image is, under another version."""
    program, target = folder / "pause", folder / "pause.tar"
    command = ["gcc", "-static", "-Os", "-x", "c", "-", "-o", str(program)]
    subprocess.run(command, input=_SOURCE, text=True, check=True)
    tree = {oci.ENTRYPOINT[0].removeprefix("/"): file(program.read_bytes(), executable=True)}
    facts = oci.Facts(VERSION, build.own_architecture(), 0)
    target.write_bytes(oci.archive(oci.image([tree], facts)))
    return target
