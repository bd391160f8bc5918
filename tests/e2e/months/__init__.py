"""Random months of small clusters, as stores have them, with the truth beside them.

Agents are off and restart, the store is away, clocks jump, GPUs vanish and move, pods of one name follow each other,
MIG is remade, prices change, and some nodes never have an agent. `python -m tests.e2e.months 200` plays 200 of them in
a real Prometheus and a real VictoriaMetrics, and compares each row of `podgpu report` with what was true.
"""
