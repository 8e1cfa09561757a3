"""The pictures of a report."""

from lightsplit.reports.figures.curves import curves
from lightsplit.reports.figures.detection import detection_pictures
from lightsplit.reports.figures.drawing import Picture
from lightsplit.reports.figures.frontier import Marks, frontier, numbered
from lightsplit.reports.figures.histograms import histograms
from lightsplit.reports.figures.tradeoff import tradeoff
from lightsplit.reports.figures.traffic import traffic

__all__ = [
    "Marks",
    "Picture",
    "curves",
    "detection_pictures",
    "frontier",
    "histograms",
    "numbered",
    "tradeoff",
    "traffic",
]
