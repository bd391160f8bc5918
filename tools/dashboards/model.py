"""Panels as Grafana's JSON model."""

from tools.dashboards.panel import DATASOURCE, Json, Panel, Query

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_WIDE = 12
# What every table has and nobody wants to read.
_NOISE = ("Time", "__name__", "job", "instance")


def panel(source: Panel, number: int, x: int, y: int) -> Json:
    return {
        "id": number,
        "type": source.kind,
        "title": source.title,
        "description": source.description,
        "datasource": DATASOURCE,
        "gridPos": {"h": source.height, "w": source.width, "x": x, "y": y},
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
        "expr": query.promql,
        "legendFormat": query.legend or "__auto",
        "instant": panel.instant,
        "range": not panel.instant,
        "format": "table" if panel.kind == "table" else "time_series",
    }


def _defaults(panel: Panel) -> Json:
    steps = [{"color": color, "value": value} for value, color in panel.thresholds]
    found: Json = {
        "unit": panel.unit,
        "color": {"mode": _color_mode(panel)},
        "thresholds": {"mode": "absolute", "steps": steps},
        "mappings": [],
        "custom": _custom(panel),
    }
    if panel.most is not None:
        found["max"] = panel.most
    if panel.kind == "state-timeline":
        found["mappings"] = [_state_names()]
    return found


def _color_mode(panel: Panel) -> str:
    return "palette-classic" if panel.kind == "timeseries" else "thresholds"


def _state_names() -> Json:
    names = {"0": {"text": "fails", "color": "red"}, "1": {"text": "works", "color": "green"}}
    return {"type": "value", "options": names}


def _custom(panel: Panel) -> Json:
    if panel.kind == "timeseries":
        return {
            "drawStyle": "line",
            "axisSoftMin": 0,
            "lineWidth": 1,
            "fillOpacity": 30 if panel.stacked else 5,
            "showPoints": "never",
            "spanNulls": False,
            "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
        }
    return {"align": "auto", "filterable": True} if panel.kind == "table" else {}


def _options(panel: Panel) -> Json:
    calculated = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    known: dict[str, Json] = {
        "timeseries": {
            "legend": _legend(panel),
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "stat": {"reduceOptions": calculated, "colorMode": "value", "graphMode": "none", "textMode": "auto"},
        "bargauge": {"reduceOptions": calculated, "orientation": "horizontal", "displayMode": "basic"},
        "state-timeline": {"mergeValues": True, "showValue": "never", "rowHeight": 0.8},
        "table": {"showHeader": True, "cellHeight": "sm"},
    }
    return known[panel.kind]


def _legend(panel: Panel) -> Json:
    """A wide panel has room for figures beside the names."""
    wide = panel.width >= _WIDE
    return {
        "displayMode": "table" if wide else "list",
        "placement": "bottom",
        "showLegend": True,
        "calcs": ["mean", "max"] if wide else [],
    }


def _overrides(panel: Panel) -> list[Json]:
    if panel.kind != "table":
        return []
    columns = [_column(panel, query, place) for place, query in enumerate(panel.queries) if query.legend]
    return [*columns, *(_link(name, address) for name, address in panel.links.items())]


def _column(panel: Panel, query: Query, place: int) -> Json:
    properties = [{"id": "displayName", "value": query.legend}, {"id": "unit", "value": query.unit}]
    return {"matcher": {"id": "byName", "options": _value_name(panel, place)}, "properties": properties}


def _value_name(panel: Panel, place: int) -> str:
    """Return what Grafana calls the column of a query's numbers."""
    return f"Value #{_LETTERS[place]}" if len(panel.queries) > 1 else "Value"


def _link(name: str, address: str) -> Json:
    link = {"title": "Show ${__value.text}", "url": address, "targetBlank": False}
    return {
        "matcher": {"id": "byName", "options": name},
        "properties": [{"id": "links", "value": [link]}],
    }


def _transformations(panel: Panel) -> list[Json]:
    if panel.kind != "table":
        return []
    nameless = [_value_name(panel, place) for place, query in enumerate(panel.queries) if not query.legend]
    hidden = dict.fromkeys((*_NOISE, *panel.hidden, *nameless), True)
    organized: Json = {
        "id": "organize",
        "options": {"excludeByName": hidden, "indexByName": {}, "renameByName": {}},
    }
    return [{"id": "merge", "options": {}}, organized] if len(panel.queries) > 1 else [organized]
