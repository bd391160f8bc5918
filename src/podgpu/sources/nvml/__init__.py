"""The NVML source: everything here runs in the sampler, a child process of the agent.

A hung call, a lost GPU or a crash in the driver's library ends in this process and takes down no page.

    child    the process: answers the agent's requests, watches deadlines
    session  the library: opened once per process, its GPUs enumerated again and again
    worker   a thread whose NVML calls can be seen from outside
    card     one GPU: its facts, readings, instances and processes
    handle   one NVML handle: guarded calls, remembered refusals
    plan     the catalog's rows grouped into as few calls as possible
    gpm, process, mig, event   what their names say
    wire     the messages between agent and sampler
"""
