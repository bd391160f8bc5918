"""Finds the container that a file of the library inside it belongs to: its folder may have another container's name.

A folder is named after its container. But one version takes a container's place among those with a GPU for its place
in the spec: if a container without a GPU comes before it, the folder has the wrong name. Nothing shows which version
made a folder, so one that may belong to two containers is left out.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from podgpu.model import Pod, VirtualGpu


def rightly_named(
    files: Sequence[VirtualGpu], holders: Mapping[str, Collection[str]], pods: Iterable[Pod]
) -> Iterator[VirtualGpu]:
    """Yield the files under the names of their containers, without those that may belong to two.

    `holders` are the containers with a GPU, by the UID of their pod. If none are known, names are believed.
    """
    folders: defaultdict[str, set[str]] = defaultdict(set)
    for file in files:
        folders[file.pod_uid].add(file.container)
    known = {pod.uid: pod for pod in pods if pod.uid in folders}
    found = {uid: owners(folders[uid], holders[uid], known.get(uid)) for uid in folders if uid in holders}
    for file in files:
        names = found.get(file.pod_uid, {file.container: file.container})
        if container := names.get(file.container):
            yield file if container == file.container else replace(file, container=container)


def owners(folders: Collection[str], holders: Collection[str], pod: Pod | None) -> Mapping[str, str]:
    """Return the container that each folder of a pod belongs to."""
    if len(folders) == len(holders) == 1:
        return dict(zip(folders, holders, strict=True))
    listed = [container for container in pod.containers if not container.is_ephemeral] if pod and pod.phase else []
    own = {name: name for name in holders}
    if not listed:  # the spec of a pod without a phase is not known
        return own if set(folders) == set(holders) else {}
    # An init container that has ended is not among the holders, but may have been one.
    initial = [container.name for container in listed if container.is_init and container.limits]
    names = [container.name for container in listed]
    readings = [own, _by_place(names, holders), _by_place(names, {*holders, *initial})]
    fitting = [reading for reading in readings if set(folders) <= reading.keys()]
    found = {name: {reading[name] for reading in fitting} for name in folders}
    return {name: next(iter(options)) for name, options in found.items() if len(options) == 1}


def _by_place(names: Sequence[str], holders: Collection[str]) -> Mapping[str, str]:
    return dict(zip(names, [name for name in names if name in holders], strict=False))
