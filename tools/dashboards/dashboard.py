"""A dashboard: its variables, its links to the others, and its sections laid out from top to bottom."""

import json
from dataclasses import dataclass

from tools.dashboards import model
from tools.dashboards.panel import DATASOURCE, Json, Panel, Section

TAG = "podgpu"
_COLUMNS = 24


@dataclass(frozen=True)
class Variable:
    """A choice of values of a label."""

    name: str
    query: str


CLUSTER = Variable("cluster", "label_values(podgpu_gpu_info, cluster)")
NODE = Variable("node", 'label_values(podgpu_gpu_info{cluster=~"$cluster"}, node)')
NAMESPACE = Variable(
    "namespace",
    'label_values(podgpu_container_allocated_seconds_total{cluster=~"$cluster", node=~"$node"}, namespace)',
)
POD = Variable(
    "pod",
    "label_values(podgpu_container_allocated_seconds_total"
    '{cluster=~"$cluster", node=~"$node", namespace=~"$namespace"}, pod)',
)


@dataclass(frozen=True)
class Dashboard:
    """`uid` is part of its address and must never change. `answer` is the panel that answers its question."""

    uid: str
    title: str
    description: str
    sections: tuple[Section, ...]
    answer: str
    variables: tuple[Variable, ...] = (CLUSTER, NODE, NAMESPACE)

    @property
    def panels(self) -> list[Panel]:
        return [panel for section in self.sections for panel in section.panels]

    def render(self) -> str:
        return json.dumps(self.model(), indent=2, ensure_ascii=False) + "\n"

    def model(self) -> Json:
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": [TAG, "gpu", "kubernetes"],
            "schemaVersion": 39,
            # What is changed in Grafana is lost with the next version, so one saves a copy. dashboard-linter wants it.
            "editable": False,
            "graphTooltip": 1,
            "refresh": "1m",
            "time": {"from": "now-6h", "to": "now"},
            "timezone": "browser",
            "links": [_links()],
            "templating": {"list": [_datasource(), *(_variable(variable) for variable in self.variables)]},
            "annotations": {"list": []},
            "panels": _laid_out(self.sections),
        }


def _laid_out(sections: tuple[Section, ...]) -> list[Json]:
    found: list[Json] = []
    y = 0
    for section in sections:
        found.append(model.row(section.title, len(found) + 1, y))
        y += 1
        for panels in _rows(section.panels):
            x, height = 0, max(panel.height for panel in panels)
            for panel in panels:
                found.append(model.panel(panel, len(found) + 1, x, y, height))
                x += panel.width
            y += height
    return found


def _rows(panels: tuple[Panel, ...]) -> list[list[Panel]]:
    """Panels side by side, which become as high as the highest of them."""
    rows: list[list[Panel]] = [[]]
    for panel in panels:
        if sum(other.width for other in rows[-1]) + panel.width > _COLUMNS:
            rows.append([])
        rows[-1].append(panel)
    return rows


def _links() -> Json:
    return {
        "type": "dashboards",
        "title": "podgpu",
        "tags": [TAG],
        "asDropdown": True,
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
        "icon": "external link",
        "tooltip": "",
        "url": "",
    }


def _datasource() -> Json:
    return {
        "type": "datasource",
        "name": "datasource",
        "label": "Data source",
        "query": "prometheus",
        "refresh": 1,
        "regex": "",
        "multi": False,
        "includeAll": False,
        "hide": 0,
        "options": [],
    }


def _variable(variable: Variable) -> Json:
    """Choose all at first, as `.*`: that also finds series that lack the label, as `cluster` often is."""
    return {
        "type": "query",
        "name": variable.name,
        "label": variable.name.capitalize(),
        "datasource": DATASOURCE,
        "query": {"query": variable.query, "refId": f"{variable.name}-variable"},
        "refresh": 2,
        "regex": "",
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "hide": 0,
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "options": [],
    }
