"""The Python of the guides runs as it is written."""

import json

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("page", ["docs/guides/researcher.md", "docs/logging.md"])
def test_a_callback_of_the_page_follows_its_run(blocks, tmp_path, monkeypatch, page):
    monkeypatch.chdir(tmp_path)
    (code,) = blocks(page)
    exec(code, {})  # noqa: S102
    (metrics,) = tmp_path.glob("runs/*/metrics.jsonl")
    assert "test_accuracy" in json.loads(metrics.read_text().splitlines()[0])
