"""How many clients may wait, as far as the process's file descriptors go."""

import resource

# For the driver, the kubelet, the API server, files, logs and event streams.
OWN = 640
LEAST = 64


def spare(connections: int, *, wanted: int) -> int:
    """Raise the soft limit as far as needed and allowed, and return how many of the wanted ones fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = OWN + connections + wanted
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return wanted
    return max(min(LEAST, wanted), min(wanted, soft - OWN - connections))
