"""Where device numbers come from. Each source is a folder here; `registry` finds them.

Its options, if it has any, are the frozen dataclass in the folder's `options.py`. The folder's `__init__.py`
imports nothing heavy before `open` is called, since a child process of the source imports it too. This module imports
nothing at all: what sources are to the rest of podgpu is in `protocols`. A folder's `__init__.py` holds:

    NAME, HELP          its name in `--source`, and in a few words where its numbers come from
    open(options, site) opens the source; `options` is None if it declares none

A folder without HELP cannot be chosen: it adds to a source. Where they apply, there are:

    IS_DEFAULT          this source is used unless the user chooses another
    IS_DEMO             its numbers are made up
    NAMES_HOLDERS       its report says which pod holds which card
    SEES_PROCESSES      False if it cannot list the processes on a card
    LENDS_PROFILING, BORROWS_PROFILING
                        it can give profiling counters to another source, or take them from another: see `merged`
    play(options)       in place of `open`: it plays recorded snapshots, which are attributed already
    node_sources()      the node's pods and processes, if the source brings its own
"""
