"""The snippets of docs/your-loop.md run as they stand."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "your-loop.md"


def test_the_loop_of_the_page_runs():
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names = {}
    exec(compile(snippet, str(PAGE), "exec"), names)  # noqa: S102  our own page
    assert names["server"].loops.applied() == {"owner": 20}
