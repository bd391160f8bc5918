"""Panels as Grafana's JSON model."""

from collections.abc import Iterable

from tools.dashboards.panel import DATASOURCE, PLAIN, Column, Json, Panel, Query, State, Thresholds

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# Columns that every table has and that are hidden.
_NOISE = ("Time", "__name__", "job", "instance")
_NO_CELL = "–"

# An axis ends no lower than here, so that nothing but zeros is not drawn up to 100.
_SOFT_TOP = {"s": 0.01}
# Rows of a state timeline on one page, so that their names do not overlap in a panel 12 high.
_ROWS_PER_PAGE = 16


def panel(source: Panel, number: int, x: int, y: int, height: int) -> Json:
    return {
        "id": number,
        "type": source.kind,
        "title": source.title,
        "description": source.told,
        "datasource": DATASOURCE,
        "gridPos": {"h": height, "w": source.width, "x": x, "y": y},
        "fieldConfig": {"defaults": _defaults(source), "overrides": _overrides(source)},
        "options": _options(source),
        "targets": [_target(source, query, _LETTERS[place]) for place, query in enumerate(source.queries)],
        "transformations": _transformations(source),
    }


def row(title: str, number: int, y: int) -> Json:
    place = {"h": 1, "w": 24, "x": 0, "y": y}
    return {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": place, "panels": []}


def _target(panel: Panel, query: Query, letter: str) -> Json:
    return {
        "refId": letter,
        "datasource": DATASOURCE,
        "expr": query.limited(panel.most_series),
        "legendFormat": query.legend or "__auto",
        "instant": panel.instant,
        "range": not panel.instant,
        "format": "table" if panel.kind == "table" else "time_series",
    }


def _defaults(panel: Panel) -> Json:
    found: Json = {
        "unit": panel.unit,
        "noValue": panel.no_value,
        "color": {"mode": _color_mode(panel)},
        "thresholds": _steps(panel.thresholds),
        "mappings": _mappings(panel.states),
        "custom": _custom(panel),
    }
    if panel.kind in {"timeseries", "bargauge"} and panel.least is not None:
        found["min"] = panel.least
    if panel.most is not None:
        found["max"] = panel.most
    return found


def _steps(thresholds: Thresholds) -> Json:
    return {"mode": "absolute", "steps": [{"color": color, "value": value} for value, color in thresholds]}


def _color_mode(panel: Panel) -> str:
    """Thresholds would hide the colours of states that Grafana merges."""
    return "palette-classic" if panel.kind in {"timeseries", "state-timeline"} else "thresholds"


def _mappings(states: Iterable[State]) -> list[Json]:
    options = {
        str(state.value): {"text": state.text, "color": state.color, "index": place}
        for place, state in enumerate(states)
    }
    return [{"type": "value", "options": options}] if options else []


def _custom(panel: Panel) -> Json:
    if panel.kind == "timeseries":
        return {
            "drawStyle": "line",
            "axisSoftMin": 0,
            "axisSoftMax": _SOFT_TOP.get(panel.unit, 1),
            "lineWidth": 1,
            "fillOpacity": 30 if panel.stacked else 0,
            "showPoints": "never",
            "thresholdsStyle": {"mode": "off" if panel.thresholds == PLAIN else "line"},
            "spanNulls": False,
            "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
        }
    if panel.kind == "state-timeline":
        return {"fillOpacity": 80, "lineWidth": 0}
    return {"align": "auto", "filterable": False} if panel.kind == "table" else {}


def _options(panel: Panel) -> Json:
    calculated = {"calcs": ["last"], "fields": "", "values": False}
    known: dict[str, Json] = {
        "timeseries": {"legend": _legend(), "tooltip": {"mode": "multi", "sort": "desc"}},
        "stat": {
            "reduceOptions": calculated,
            "colorMode": "value",
            "graphMode": "none",
            "textMode": "value_and_name" if panel.queries[0].legend else "auto",
        },
        "bargauge": {"reduceOptions": calculated, "orientation": "horizontal", "displayMode": "basic"},
        "state-timeline": {
            # Merged values lose the colours of their mappings.
            "mergeValues": False,
            "showValue": "never",
            "rowHeight": 0.8,
            "perPage": _ROWS_PER_PAGE,
            # It would name the words for an empty panel as a state.
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": False, "calcs": []},
            "tooltip": {"mode": "single", "sort": "none"},
        },
        "table": {"showHeader": True, "cellHeight": "sm", "sortBy": [_order(panel)] if panel.sort else []},
    }
    return known[panel.kind]


def _legend() -> Json:
    """A value that has ended is not the last: `lastNotNull` would show what a lost card had before."""
    return {
        "displayMode": "table",
        "placement": "bottom",
        "showLegend": True,
        "calcs": ["last"],
        "sortBy": "Last",
        "sortDesc": True,
    }


def _order(panel: Panel) -> Json:
    return {"displayName": panel.sort, "desc": panel.sort not in {column.title for column in panel.columns}}


def _overrides(panel: Panel) -> list[Json]:
    numbers = [_number(panel, query, place) for place, query in enumerate(panel.queries) if query.legend]
    return [*map(_label, panel.columns), *numbers] if panel.kind == "table" else []


def _override(name: str, title: str, width: int, more: Iterable[tuple[str, object]]) -> Json:
    """An empty cell has a dash: the words for an empty panel are too long for it."""
    found = {"displayName": title, "custom.minWidth": width, "noValue": _NO_CELL, **dict(more)}
    properties = [{"id": key, "value": value} for key, value in found.items()]
    return {"matcher": {"id": "byName", "options": name}, "properties": properties}


def _label(column: Column) -> Json:
    link = {"title": "Show ${__value.text}", "url": column.link, "targetBlank": False}
    more: list[tuple[str, object]] = [("links", [link])] if column.link else []
    if column.colors:
        words = {
            value: {"text": text, "color": color, "index": place}
            for place, (value, text, color) in enumerate(column.colors)
        }
        more += [("mappings", [{"type": "value", "options": words}]), ("custom.cellOptions", {"type": "color-text"})]
    return _override(column.label, column.title, column.width, more)


def _number(panel: Panel, query: Query, place: int) -> Json:
    more: list[tuple[str, object]] = [("unit", query.unit)]
    if query.states:
        more += [("mappings", _mappings(query.states)), ("custom.cellOptions", {"type": "color-text"})]
    if query.thresholds:
        colored = [("thresholds", _steps(query.thresholds)), ("color", {"mode": "thresholds"})]
        more += [*colored, ("custom.cellOptions", {"type": "color-text"})]
    return _override(_value_name(panel, place), query.legend, query.width, more)


def _value_name(panel: Panel, place: int) -> str:
    """Return what Grafana calls the column of a query's numbers."""
    return f"Value #{_LETTERS[place]}" if len(panel.queries) > 1 else "Value"


def _transformations(panel: Panel) -> list[Json]:
    if panel.kind != "table":
        return []
    values = {_value_name(panel, place): query.legend for place, query in enumerate(panel.queries)}
    shown = [
        *(column.label for column in panel.columns),
        *(name for name, legend in values.items() if legend),
    ]
    nameless = [name for name, legend in values.items() if not legend]
    # If no other query has an answer, Grafana calls the numbers of a nameless one Value.
    hidden = [*_NOISE, *nameless, *(["Value"] if nameless else [])]
    organized: Json = {
        "id": "organize",
        "options": {
            "excludeByName": dict.fromkeys(hidden, True),
            "indexByName": {name: place for place, name in enumerate(shown)},
            "renameByName": {},
        },
    }
    return [{"id": "merge", "options": {}}, organized] if len(panel.queries) > 1 else [organized]
