"""Every fault that is played, one module for each kind. A new fault is one entry in the tuple of its module."""

from tests.faults.plays import (
    api,
    attacks,
    cluster,
    dcgm,
    driver,
    http,
    kubelet,
    labels,
    neighbours,
    own,
    page,
    processes,
    restarts,
)

PLAYS = (
    *driver.PLAYS,
    *kubelet.PLAYS,
    *api.PLAYS,
    *restarts.PLAYS,
    *dcgm.PLAYS,
    *processes.PLAYS,
    *labels.PLAYS,
    *page.PLAYS,
    *http.PLAYS,
    *own.PLAYS,
    *cluster.PLAYS,
    *attacks.PLAYS,
    *neighbours.PLAYS,
)
