"""A program that starts others as `su` and `sudo` do, under the names that a test needs."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534
SOURCE = r"""
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/types.h>

/* Without arguments: says that it is there. Else: runs another program as its real user, or as nobody if that is root.
   With "wholly" it becomes root wholly first, as sudo does. */
int main(int count, char **arguments) {
    uid_t user = getuid();
    if (count > 1) {
        if (!strcmp(arguments[1], "wholly")) {
            if (setuid(0)) return 1;
            arguments++;
        }
        pid_t child = fork();
        if (child == 0) {
            if (setuid(user ? user : 65534)) return 1;
            execl(arguments[1], arguments[1], (char *)0);
            return 1;
        }
    } else {
        printf("%d\n", (int)getpid());
        fflush(stdout);
    }
    pause();
    return 0;
}
"""


def built(folder: Path) -> Path:
    """Make the programs: of MPS, one that others may write, and one that makes others root, by links of all kinds."""
    folder.chmod(0o755)
    (folder / "start.c").write_text(SOURCE)
    su = folder / "su"
    subprocess.run(["gcc", "-o", su, folder / "start.c"], check=True, timeout=60)
    for below in ("linked", "writable"):
        (folder / below).mkdir()
    for name, mode in (
        ("nvidia-cuda-mps-control", 0o755),
        ("nvidia-cuda-mps-server", 0o755),
        ("writable/nvidia-cuda-mps-control", 0o777),
        ("tool", 0o755),
    ):
        shutil.copy(su, folder / name)
        (folder / name).chmod(mode)
    su.chmod(0o4755)
    (folder / "nvidia-cuda-mps-su").symlink_to(su)
    (folder / "nvidia-cuda-mps-tool").symlink_to(folder / "tool")
    (folder / "linked" / "nvidia-cuda-mps-control").hardlink_to(su)
    return folder


@contextmanager
def started(programs: Path, program: str, user: int, *arguments: str) -> Iterator[int]:
    """Run a program as a user, and return the PID of the one that it starts: the last argument."""
    *how, other = arguments
    command = [str(programs / program), *how, str(programs / other)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, user=user, group=user, extra_groups=[]) as process:
        assert process.stdout
        said = process.stdout.readline()
        assert said, "no program can make its user root here"
        try:
            yield int(said)
        finally:
            os.kill(int(said), 9)
            process.kill()
