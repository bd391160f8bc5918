"""Who is on this machine, according to the kernel and the files of the system.

`cgroup` and `procfs` find the owner of a process; the others name owners outside Kubernetes. A name that cannot be
read leaves the id, which is always known.
"""
