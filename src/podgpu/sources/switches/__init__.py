"""The driver's log of context switches: which process's context is on a card, to the nanosecond.

This is no `--source` of its own. It adds to one, where somebody asks for it. The driver keeps the log for profilers,
behind a private interface with sharp edges. So all of it happens in a child process that makes a short list of calls,
on driver branches where their layout is known, and whatever becomes of it, the rest of the agent goes on without.

    watcher  the log as the agent sees it: starts, asks and stops the child process
    child    the child process: reads the logs of the cards it is told to watch
    logbook  one card's log: opens it, reads what is new
    driver   the calls, and what the driver answers if it refuses
    layout   what the calls look like
    tape     records become slices
    wire     the messages between the agent and the child
"""

NAME = "switches"
