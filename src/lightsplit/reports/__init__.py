"""Records into tables, pictures and one page; reads what runs left, runs nothing."""

from lightsplit.reports.groups import Group, group_runs
from lightsplit.reports.page import Report, make_report, write_files, write_page
from lightsplit.reports.runs import Problem, Run, find_runs, read_run
from lightsplit.reports.tables import Table, Value, overview

__all__ = [
    "Group",
    "Problem",
    "Report",
    "Run",
    "Table",
    "Value",
    "find_runs",
    "group_runs",
    "make_report",
    "overview",
    "read_run",
    "write_files",
    "write_page",
]
