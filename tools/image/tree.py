"""A file tree in memory, and the layer it becomes: the same tree always gives the same bytes."""

import io
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, folder or symbolic link. `mode` holds its type as well, as in stat()."""

    mode: int
    data: bytes = b""
    target: str = ""


Tree = dict[str, Entry]


def file(data: bytes | str, *, executable: bool = False) -> Entry:
    content = data.encode() if isinstance(data, str) else data
    return Entry(stat.S_IFREG | (0o755 if executable else 0o644), data=content)


def folder(mode: int = 0o755) -> Entry:
    return Entry(stat.S_IFDIR | mode)


def link(target: str) -> Entry:
    return Entry(stat.S_IFLNK | 0o777, target=target)


def from_tar(data: bytes) -> Tree:
    """Read what a package unpacks to. A hard link becomes a file of its own."""
    tree: Tree = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            path = _clean(member.name)
            if member.isdir():
                tree[path] = folder(member.mode)
            elif member.issym():
                tree[path] = link(member.linkname)
            elif member.islnk():
                tree[path] = tree[_clean(member.linkname)]
            else:
                content = archive.extractfile(member)
                assert content is not None, member.name  # noqa: S101 - a package holds nothing else
                tree[path] = Entry(stat.S_IFREG | member.mode, data=content.read())
    tree.pop("", None)
    return tree


def _clean(name: str) -> str:
    return str(PurePosixPath(name)).removeprefix("/").removeprefix(".").removeprefix("/")


def layer(tree: Tree, epoch: int) -> bytes:
    """Write a tar: sorted, owned by root, of one time, with every folder above a file."""
    buffer = io.BytesIO()
    whole = {**{above: folder() for path in tree for above in _above(path)}, **tree}
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path, entry in sorted(whole.items()):
            archive.addfile(_header(path, entry, epoch), io.BytesIO(entry.data))
    return buffer.getvalue()


def _above(path: str) -> Iterator[str]:
    return (str(parent) for parent in PurePosixPath(path).parents if str(parent) != ".")


def _header(path: str, entry: Entry, epoch: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo(path)
    header.mode = stat.S_IMODE(entry.mode)
    header.mtime = epoch
    header.size = len(entry.data)
    if stat.S_ISDIR(entry.mode):
        header.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(entry.mode):
        header.type, header.linkname = tarfile.SYMTYPE, entry.target
    return header


def unpack(tree: Tree, root: Path) -> None:
    """Write the tree to disk. Links may lead out of `root`: only for programs that follow none."""
    for path, entry in sorted(tree.items()):
        place = root / path
        if stat.S_ISDIR(entry.mode):
            place.mkdir(parents=True, exist_ok=True)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if stat.S_ISLNK(entry.mode):
            place.symlink_to(entry.target)
        else:
            place.write_bytes(entry.data)
            place.chmod(stat.S_IMODE(entry.mode))
