"""Panels as Grafana's JSON model."""

from tools.dashboards.panel import DATASOURCE, Json, Panel, Query

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_WIDE = 12
# What every table has and nobody wants to read.
_NOISE = ("Time", "__name__", "job", "instance")


def panel(one: Panel, number: int, x: int, y: int) -> Json:
    return {
        "id": number,
        "type": one.kind,
        "title": one.title,
        "description": one.description,
        "datasource": DATASOURCE,
        "gridPos": {"h": one.height, "w": one.width, "x": x, "y": y},
        "fieldConfig": {"defaults": _defaults(one), "overrides": _overrides(one)},
        "options": _options(one),
        "targets": [_target(one, query, _LETTERS[place]) for place, query in enumerate(one.queries)],
        "transformations": _transformations(one),
    }


def row(title: str, number: int, y: int) -> Json:
    place = {"h": 1, "w": 24, "x": 0, "y": y}
    return {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": place, "panels": []}


def _target(one: Panel, query: Query, letter: str) -> Json:
    return {
        "refId": letter,
        "datasource": DATASOURCE,
        "expr": query.promql,
        "legendFormat": query.legend or "__auto",
        "instant": one.instant,
        "range": not one.instant,
        "format": "table" if one.kind == "table" else "time_series",
    }


def _defaults(one: Panel) -> Json:
    steps = [{"color": color, "value": value} for value, color in one.thresholds]
    found: Json = {
        "unit": one.unit,
        "color": {"mode": _color_mode(one)},
        "thresholds": {"mode": "absolute", "steps": steps},
        "mappings": [],
        "custom": _custom(one),
    }
    if one.most is not None:
        found["max"] = one.most
    if one.kind == "state-timeline":
        found["mappings"] = [_state_names()]
    return found


def _color_mode(one: Panel) -> str:
    return "palette-classic" if one.kind == "timeseries" else "thresholds"


def _state_names() -> Json:
    names = {"0": {"text": "fails", "color": "red"}, "1": {"text": "works", "color": "green"}}
    return {"type": "value", "options": names}


def _custom(one: Panel) -> Json:
    if one.kind == "timeseries":
        return {
            "drawStyle": "line",
            "axisSoftMin": 0,
            "lineWidth": 1,
            "fillOpacity": 30 if one.stacked else 5,
            "showPoints": "never",
            "spanNulls": False,
            "stacking": {"mode": "normal" if one.stacked else "none", "group": "A"},
        }
    return {"align": "auto", "filterable": True} if one.kind == "table" else {}


def _options(one: Panel) -> Json:
    calculated = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    known: dict[str, Json] = {
        "timeseries": {
            "legend": _legend(one),
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "stat": {"reduceOptions": calculated, "colorMode": "value", "graphMode": "none", "textMode": "auto"},
        "bargauge": {"reduceOptions": calculated, "orientation": "horizontal", "displayMode": "basic"},
        "state-timeline": {"mergeValues": True, "showValue": "never", "rowHeight": 0.8},
        "table": {"showHeader": True, "cellHeight": "sm"},
    }
    return known[one.kind]


def _legend(one: Panel) -> Json:
    """A wide panel has room for figures beside the names."""
    wide = one.width >= _WIDE
    return {
        "displayMode": "table" if wide else "list",
        "placement": "bottom",
        "showLegend": True,
        "calcs": ["mean", "max"] if wide else [],
    }


def _overrides(one: Panel) -> list[Json]:
    if one.kind != "table":
        return []
    columns = [_column(one, query, place) for place, query in enumerate(one.queries) if query.legend]
    return [*columns, *(_link(name, address) for name, address in one.links.items())]


def _column(one: Panel, query: Query, place: int) -> Json:
    properties = [{"id": "displayName", "value": query.legend}, {"id": "unit", "value": query.unit}]
    return {"matcher": {"id": "byName", "options": _value_name(one, place)}, "properties": properties}


def _value_name(one: Panel, place: int) -> str:
    """Return what Grafana calls the column of a query's numbers."""
    return f"Value #{_LETTERS[place]}" if len(one.queries) > 1 else "Value"


def _link(name: str, address: str) -> Json:
    link = {"title": "Show ${__value.text}", "url": address, "targetBlank": False}
    return {
        "matcher": {"id": "byName", "options": name},
        "properties": [{"id": "links", "value": [link]}],
    }


def _transformations(one: Panel) -> list[Json]:
    if one.kind != "table":
        return []
    nameless = [_value_name(one, place) for place, query in enumerate(one.queries) if not query.legend]
    hidden = dict.fromkeys((*_NOISE, *one.hidden, *nameless), True)
    organized: Json = {
        "id": "organize",
        "options": {"excludeByName": hidden, "indexByName": {}, "renameByName": {}},
    }
    return [{"id": "merge", "options": {}}, organized] if len(one.queries) > 1 else [organized]
