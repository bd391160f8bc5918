"""Whose a file of the library inside a container is, where its folder may have another container's name.

A folder is named after its container. But one version takes a container's place among those with a GPU for its place
in the spec: if a container without a GPU comes before it, the folder has the wrong name. Nothing in it says which
version made it, so a folder that may be of two containers is nobody's.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from podgpu.model import Pod, VirtualGpu


def rightly_named(
    files: Sequence[VirtualGpu], holders: Mapping[str, Collection[str]], pods: Iterable[Pod]
) -> Iterator[VirtualGpu]:
    """Yield the files under the names of their containers, without those that may be of two.

    `holders` are the containers with a GPU, by the UID of their pod. Where none is known, names are believed.
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
    """Return the container that each folder of a pod is of."""
    if len(folders) == len(holders) == 1:
        return dict(zip(folders, holders, strict=True))
    names = _names(pod)
    if not names:
        return {name: name for name in folders} if set(folders) == set(holders) else {}
    by_place = dict(zip(names, [name for name in names if name in holders], strict=False))
    readings = [{name: name for name in holders}, by_place]
    fitting = [reading for reading in readings if set(folders) <= reading.keys()]
    found = {name: {reading[name] for reading in fitting} for name in folders}
    return {name: next(iter(options)) for name, options in found.items() if len(options) == 1}


def _names(pod: Pod | None) -> Sequence[str]:
    """Return the containers in the order of the spec. A pod without a phase is not known by its spec."""
    listed = pod.containers if pod and pod.phase else ()
    return [one.name for one in listed if not (one.is_init or one.is_ephemeral)]
