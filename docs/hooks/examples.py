"""Examples in docstrings, shown as code: griffe knows the heading in the plural."""

from typing import Any

import griffe


class DoctestExamples(griffe.Extension):
    """Reads the section ``Example:`` of a docstring as one of doctests."""

    def on_instance(self, *, obj: griffe.Object, **_others: Any) -> None:
        """Rename the heading of one object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace(
                "Example:\n", "Examples:\n"
            )
