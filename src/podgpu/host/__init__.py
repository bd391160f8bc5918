"""Who is on this machine besides pods: containers of Docker and Podman, jobs of Slurm, users.

Names only, from files of the system. A name that cannot be read leaves the id, which is always known.
"""
