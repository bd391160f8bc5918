import shutil
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from podgpu.config import Config
from podgpu.errors import UserError

HELP = "Show how podgpu knows what a pod uses, with all the evidence."
OPTIONS = ()

URL = "http://127.0.0.1:19400"
MAX_SUGGESTIONS = 3


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "pod",
        metavar="[NAMESPACE/]POD",
        help="the pod; or, outside Kubernetes, docker/NAME, podman/NAME, slurm/JOB, user/NAME",
    )
    parser.add_argument("-n", "--namespace", metavar="NAMESPACE", help="its namespace")
    parser.add_argument("--url", default=URL, help=f"the agent on the pod's node; default {URL}")


def run(_: Config, arguments: Namespace) -> int:
    from podgpu.cli._remote import fetch
    from podgpu.views.outsider import outsider_names
    from podgpu.views.why import pod_names, why, why_outsider

    snapshot = fetch(arguments.url)
    pods = pod_names(snapshot)
    others = outsider_names(snapshot) if arguments.namespace is None else []
    name = _full(arguments.pod, arguments.namespace, pods, others)
    namespace, pod = name.split("/", 1) if "/" in name else ("", name)
    width = shutil.get_terminal_size().columns
    text = why(snapshot, namespace, pod, width)
    if text is None and name in others:
        text = why_outsider(snapshot, name, width)
    if text is None:
        raise UserError(f"no GPU of node {snapshot.node} has a pod {name}; {_advice(name, pods + others)}")
    print(text, end="")
    return 0


def _full(pod: str, namespace: str | None, pods: Sequence[str], others: Sequence[str]) -> str:
    """Return `namespace/pod`. A bare name is enough if only one namespace has it. Pods come before others."""
    given, slash, _ = pod.rpartition("/")
    if slash and namespace not in (None, given):
        raise UserError(f"the namespace is {given!r} or {namespace!r}; give one only")
    if slash or namespace is not None:
        return pod if slash else f"{namespace}/{pod}"
    found = [name for name in pods if name.endswith(f"/{pod}")]
    found = found or [name for name in others if name.endswith(f"/{pod}")]
    if len(found) > 1:
        raise UserError(f"several are called {pod}; give one of {', '.join(found)}")
    return found[0] if found else pod


def _advice(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    # With no namespace or a wrong one, the pod's own name may still match.
    by_name = {full.rpartition("/")[2]: full for full in known}
    near = get_close_matches(name, known, n=MAX_SUGGESTIONS)
    near += [by_name[one] for one in get_close_matches(name.rpartition("/")[2], by_name, n=MAX_SUGGESTIONS)]
    if near:
        return f"did you mean {' or '.join(dict.fromkeys(near[:MAX_SUGGESTIONS]))}?"
    return "ask the agent on the pod's node with --url"
