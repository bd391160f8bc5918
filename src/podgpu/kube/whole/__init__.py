"""The whole cluster by lists and watches: nodes, pods, resource claims and slices, and what pods were made for."""
