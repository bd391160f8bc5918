"""Where the processes of MPS meet, by what they have mounted."""

import pytest

from podgpu.host.mps import pipe_directory, places

HOST = (
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "24 22 0:24 / /run rw,nosuid shared:13 - tmpfs tmpfs rw,mode=755\n"
    "31 22 8:17 /images /var/lib/containerd rw - ext4 /dev/sdb1 rw\n"
    "77 22 0:61 / /mnt/pvc rw - nfs server:/export rw\n"
)
CONTAINER = "900 800 0:99 / / rw - overlay overlay rw\n"


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("901 900 0:24 /nvidia/mps /mps rw - tmpfs tmpfs rw", "/run/nvidia/mps"),
        (
            "901 900 0:24 /nvidia/mps/nvidia.com/gpu/pipe /mps/nvidia.com/gpu/pipe rw shared:4 - tmpfs tmpfs rw",
            "/run/nvidia/mps/nvidia.com/gpu/pipe",
        ),
        ("901 900 8:1 /tmp/nvidia-mps /tmp/nvidia-mps rw - ext4 /dev/sda1 rw", "/tmp/nvidia-mps"),
        (
            "901 900 8:1 /var/lib/kubelet/plugins/gpu.nvidia.com/mps/a\\040b/pipe /p rw - ext4 /dev/sda1 rw",
            "/var/lib/kubelet/plugins/gpu.nvidia.com/mps/a b/pipe",
        ),
    ],
    ids=["daemon", "client", "tmp", "dra, escaped"],
)
def test_a_directory_of_the_host_is_found_wherever_it_is_mounted(line: str, path: str) -> None:
    assert pipe_directory(f"{CONTAINER}{line}\n", places(HOST)) == path


@pytest.mark.parametrize(
    "line",
    [
        "901 900 0:99 /run/nvidia/mps /run/nvidia/mps rw - overlay overlay rw",
        "901 900 0:123 /nvidia/mps /run/nvidia/mps rw - tmpfs tmpfs rw",
        "901 900 0:61 /run/nvidia/mps /run/nvidia/mps rw - nfs server:/export rw",
        "901 900 0:24 /nvidia/mps-of-mine /mps rw - tmpfs tmpfs rw",
        "901 900 8:1 /var/lib/kubelet/pods/uid/volumes/run/nvidia/mps /mps rw - ext4 /dev/sda1 rw",
        "901 900 8:1",
        "",
    ],
    ids=["image", "own tmpfs", "shared volume", "alike", "emptyDir", "cut", "nothing"],
)
def test_what_a_container_makes_itself_is_not_the_hosts(line: str) -> None:
    assert pipe_directory(f"{CONTAINER}{line}\n", places(HOST)) is None
