"""Grids of experiments: sweep files, their cells, and the workers that run them."""

from lightsplit.sweeps.audit_table import make_audit_options
from lightsplit.sweeps.catalogue import catalogue, find_sweep
from lightsplit.sweeps.cells import Cell, expand
from lightsplit.sweeps.estimates import Estimate, estimate
from lightsplit.sweeps.ray_workers import RayWorkers
from lightsplit.sweeps.sweep_file import Sweep, read_sweep
from lightsplit.sweeps.sweep_folder import SweepFolder
from lightsplit.sweeps.sweeping import SweepRun, SweepState
from lightsplit.sweeps.work import Advance, Order
from lightsplit.sweeps.workers import LocalWorkers, Workers, threads_each

__all__ = [
    "Advance",
    "Cell",
    "Estimate",
    "LocalWorkers",
    "Order",
    "RayWorkers",
    "Sweep",
    "SweepFolder",
    "SweepRun",
    "SweepState",
    "Workers",
    "catalogue",
    "estimate",
    "expand",
    "find_sweep",
    "make_audit_options",
    "read_sweep",
    "threads_each",
]
