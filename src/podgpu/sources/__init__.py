"""Where device numbers come from. Each source is a folder here; `registry` finds them.

The folder's `__init__.py` holds `SOURCE`, a `SourceEntry` as in `protocols`. It imports nothing heavy before `open` is
called, since a child process of the source imports it too. This module imports nothing at all. The options of the
source, if it has any, are the frozen dataclass in the folder's `options.py`. A folder without `SOURCE` cannot be
chosen: it adds to a source.
"""
