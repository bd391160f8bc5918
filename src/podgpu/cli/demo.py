from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace

from podgpu.config import OPTIONS as ALL
from podgpu.config import Config
from podgpu.option import KUBERNETES, NOT_AN_AGENTS, SOURCE, options_of
from podgpu.option.value import NATIVE, Address
from podgpu.sources import registry

HELP = "Serve a simulated node, to try podgpu without a GPU."
SHOWN = "kube_pod_labels"  # the demo has pods, and they have labels
TEAM = "team"
OWN = {option.name for section in registry.demo().sections for option in options_of(section).values()}
OPTIONS = tuple(
    name
    for name, option in ALL.items()
    if option.group not in (SOURCE, KUBERNETES, *NOT_AN_AGENTS) or name in {SHOWN, *OWN}
)


def run(config: Config, _: Namespace) -> int:
    from podgpu.cli._agent_process import serve

    labels = config.kube_pod_labels or (TEAM,)
    return serve(replace(config, source=registry.demo().name, kube_pod_labels=labels), _greet)


def _greet(addresses: Sequence[Address], scheme: str) -> None:
    print("DEMO: every number is made up. Ctrl-C ends it.")
    for address in addresses:
        if address.dialect == NATIVE:
            print(f"  {'page':<16} {_url(address, scheme)}/")
        print(f"  {address.dialect:<16} {_url(address, scheme)}/metrics")
    print(end="", flush=True)


def _url(address: Address, scheme: str) -> str:
    """Return a URL that works on this machine, even if the address means every interface."""
    host = "localhost" if address.host in ("", "0.0.0.0", "::") else address.host  # noqa: S104
    return f"{scheme}://{replace(address, host=host, dialect=NATIVE)}"
