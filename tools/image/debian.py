"""The lower layer: Debian's Python and the libraries it loads, unpacked from signed packages. No shell, no apt."""

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.image.tree import Tree, file, folder, from_tar

SUITE = "trixie"
PYTHON = "3.13"
MIRROR = "http://deb.debian.org/debian"
SECURITY = "http://deb.debian.org/debian-security"
INCLUDED = ("base-files", "ca-certificates", "python3")

# Wanted by the maintainer scripts of the others, or by an interactive Python. Nothing here runs either.
_UNUSED = frozenset(
    {
        "debconf",
        "dpkg",
        "gcc-14-base",
        "libacl1",
        "libcrypt1",
        "libmd0",
        "libpcre2-8-0",
        "libselinux1",
        "mawk",
        "media-types",
        "openssl",
        "readline-common",
        "tar",
        "tzdata",
    }
)
_PRUNED = re.compile(
    r"usr/share/(?!doc/|ca-certificates/).*"
    r"|usr/bin/(?!python3).*"
    r"|usr/lib/(binfmt\.d|valgrind)(/.*)?"
    r"|usr/share/doc/(?![^/]+/copyright$).+"
    r"|usr/lib/python3[^/]*/(pydoc_data|idlelib|ensurepip|test|turtledemo|unittest)(/.*)?"
    r"|.*/__pycache__(/.*)?"
    r"|etc/(apt|cron\.daily|dpkg|logrotate\.d|update-motd\.d|default|profile\.d)(/.*)?"
    r"|var/(backups|cache|local|mail|opt|spool)(/.*)?"
    r"|(home|media|mnt|opt|srv|boot)(/.*)?"
)
_BUNDLE = "etc/ssl/certs/ca-certificates.crt"
_ACCOUNTS = {
    "etc/passwd": "root:x:0:0:root:/:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    architecture: str
    control: str
    path: Path


def fetch(target: Path, architecture: str, mirror: str = MIRROR, security: str = SECURITY) -> None:
    """Have apt choose, download and verify the packages, for a system that is thrown away again."""
    target.mkdir(parents=True, exist_ok=True)
    command = [
        "mmdebstrap",
        "--quiet",
        "--variant=extract",
        f"--include={','.join(INCLUDED)}",
        f"--architectures={architecture}",
        "--skip=cleanup/apt",
        f"--extract-hook=sync-out /var/cache/apt/archives {target}",
        SUITE,
        "/dev/null",
        _source(mirror, SUITE, dated=mirror != MIRROR),
        _source(security, f"{SUITE}-security", dated=security != SECURITY),
    ]
    subprocess.run(command, check=True)


def _source(mirror: str, suite: str, *, dated: bool) -> str:
    """The signature of an archive of former days is good, but says that it is out of date."""
    return f"deb {'[check-valid-until=no] ' if dated else ''}{mirror} {suite} main"


def packages(folder_of_debs: Path) -> Sequence[Package]:
    """The packages that go into the image, by name."""
    every = (_package(path) for path in sorted(folder_of_debs.glob("*.deb")))
    return [each for each in every if each.name not in _UNUSED]


def _package(path: Path) -> Package:
    control = _output("dpkg-deb", "--field", str(path)).decode()
    fields: dict[str, str] = dict(re.findall(r"^([A-Za-z-]+): (.*)$", control, re.MULTILINE))
    return Package(
        name=fields["Package"],
        version=fields["Version"],
        architecture=fields["Architecture"],
        control=control,
        path=path,
    )


def tree(chosen: Iterable[Package]) -> Tree:
    """Unpack the packages, and do by hand the little that their scripts would have done."""
    root: Tree = {}
    for package in chosen:
        root |= from_tar(_output("dpkg-deb", "--fsys-tarfile", str(package.path)))
        root[f"var/lib/dpkg/status.d/{package.name}"] = file(package.control)
    root = {path: entry for path, entry in root.items() if not _PRUNED.fullmatch(path)}
    root[_BUNDLE] = file(_bundle(root))
    root |= {path: file(text) for path, text in _ACCOUNTS.items()}
    return root | {"tmp": folder(0o1777), "proc": folder(), "sys": folder(), "dev": folder()}


def _bundle(root: Tree) -> bytes:
    parts = (entry.data for path, entry in sorted(root.items()) if path.endswith(".crt"))
    return b"".join(parts)


def _output(*command: str) -> bytes:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
