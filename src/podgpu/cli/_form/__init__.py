"""How commands print rows: as a table, as Markdown, or as JSON, YAML or CSV for other programs.

A row is a struct with raw values in base units. Columns say how a person reads them.
"""

from podgpu.cli._form.arguments import add_output, add_selection, selection
from podgpu.cli._form.column import Column
from podgpu.cli._form.output import Sheet, has_colour, show

__all__ = ["Column", "Sheet", "add_output", "add_selection", "has_colour", "selection", "show"]
