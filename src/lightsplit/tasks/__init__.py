"""Tasks: a model, its loss and its data, built in or written by a user."""

from lightsplit.tasks import images  # noqa: F401  registers the built-in tasks
from lightsplit.tasks.base import TASKS, Loss, Task
from lightsplit.tasks.loading import find_task, is_own, make_task, task_file

__all__ = ["TASKS", "Loss", "Task", "find_task", "is_own", "make_task", "task_file"]
