"""The table of privileges in docs/install.md, from the list that the chart's notes use too."""

import yaml

from tools.chart import CHART, PROJECT

PATH = PROJECT / "docs/install.md"
SOURCE = CHART / "files/privileges.yaml"
_START = "<!-- Made from deploy/helm/podgpu/files/privileges.yaml by `make chart`. -->"
_END = "<!-- End of the table. -->"


def text() -> str:
    """Write the page anew, with the table as it should be."""
    page = PATH.read_text(encoding="utf-8")
    before, _, rest = page.partition(_START)
    _, end, after = rest.partition(_END)
    if not end:
        raise ValueError(f"{PATH} has no place for the table: it needs the lines {_START} and {_END}")
    return f"{before}{_START}\n\n{_table()}\n\n{_END}{after}"


def _table() -> str:
    rows = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))
    head = ["| value | default | the agent may see | gives | without it |", "|---|---|---|---|---|"]
    return "\n".join([*head, *(_row(row) for row in rows)])


def _row(row: dict[str, str]) -> str:
    default = "on" if row["default"] else "off"
    return f"| `{row['value']}` | {default} | {row['access']} | {row['gives']} | {row['lost']} |"
