"""Every fault that is played, one module for each kind. A new fault is one entry in the tuple of its module."""

from tests.faults.plays import (
    api,
    attacks,
    dcgm,
    driver,
    http,
    kubelet,
    labels,
    neighbours,
    own,
    page,
    processes,
)

PLAYS = (
    *driver.PLAYS,
    *kubelet.PLAYS,
    *api.PLAYS,
    *dcgm.PLAYS,
    *processes.PLAYS,
    *labels.PLAYS,
    *page.PLAYS,
    *http.PLAYS,
    *own.PLAYS,
    *attacks.PLAYS,
    *neighbours.PLAYS,
)
