from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace

from podgpu.config import OPTIONS as ALL
from podgpu.config import Config
from podgpu.config.address import Address

HELP = "Serve a simulated node, to look around without a GPU."
OF_A_REAL_NODE = {"source", "nvml_library", "kube_api", "kube_workload_labels", "sharing_ratio_file"}
OPTIONS = tuple(name for name in ALL if name not in OF_A_REAL_NODE and not name.startswith("path_"))


def run(config: Config, _: Namespace) -> int:
    from podgpu.cli._service import serve

    return serve(replace(config, source="simulator"), _greet)


def _greet(addresses: Sequence[Address]) -> None:
    print("DEMO: every number is made up. Ctrl-C ends it.")
    for address in addresses:
        print(f"  page     {_url(address)}/\n  metrics  {_url(address)}/metrics")
    print(end="", flush=True)


def _url(address: Address) -> str:
    """Give a URL that works on this machine, also for 'every interface'."""
    host = "localhost" if address.host in ("", "0.0.0.0", "::") else address.host  # noqa: S104
    return f"http://{replace(address, host=host, dialect='native')}"
