"""The driver's log of context switches: which process's context is on a card, to the nanosecond.

It is no value of `--source`, but adds to one where the user asks for it. The driver keeps the log for profilers, behind
a private interface that is easy to misuse. So all of it happens in a child process that makes a short list of calls, on
driver branches where their layout is known. Whatever happens to that process, the rest of the agent goes on.

    watcher  the log as the agent sees it: starts, asks and stops the child process
    child    the child process: reads the logs of the cards it is asked to watch
    driver   the calls, and one card's log: opens it, reads what is new
    layout   what the calls look like in memory
    access   whether the log could be read, without trying
    slices   turns records into slices, in the agent

The child process imports `child`, `driver` and `layout`, and these import little: it takes a third of the memory.
"""

NAME = "switches"
