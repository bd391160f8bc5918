"""The Grafana dashboards, written as rows of Python: `python -m tools.dashboards` makes their JSON."""
