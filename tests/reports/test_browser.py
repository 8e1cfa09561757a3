"""The report in a real browser; skipped without one."""

import json
import re
import shutil
import subprocess

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"]
OPTIONS += ["--no-first-run", "--disable-background-networking", "--disable-sync"]
OPTIONS += [
    "--disable-component-update",
    "--hide-scrollbars",
    "--enable-logging=stderr",
]
# What a reader would see, written where the dump of the page shows it.
PROBE = """
<script>
addEventListener("load", () => {
  const table = document.querySelector("#runs table");
  const column = [...table.querySelectorAll("th")].findIndex(
    (heading) => heading.textContent.startsWith("accuracy"));
  const keys = () => [...table.tBodies[0].rows].map(
    (row) => Number(row.cells[column].dataset.key));
  const orders = [0, 1].map(() => {
    table.querySelectorAll("th button")[column].click();
    return [table.querySelectorAll("th")[column].getAttribute("aria-sort"), keys()];
  });
  const root = document.documentElement;
  const seen = {
    orders,
    images: [...document.images].map((image) => image.naturalWidth),
    pictures: [...document.querySelectorAll("svg.picture")].map(
      (svg) => svg.getBoundingClientRect().height),
    overflow: root.scrollWidth - root.clientWidth,
  };
  document.body.setAttribute("data-seen", encodeURIComponent(JSON.stringify(seen)));
});
</script>
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


def browse(page, tmp_path, *options):
    """Return what Chromium printed, and what it complained about."""
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    command = [CHROMIUM, *OPTIONS, profile, *options, page.as_uri()]
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=400, check=True
    )
    return result.stdout, result.stderr


@pytest.mark.parametrize("width", [1280, 500])
def test_a_reader_sees_everything_and_can_sort(page, tmp_path, width):
    probed = tmp_path / "probed.html"
    probed.write_text(page.read_text().replace("</body>", f"{PROBE}</body>"))
    dump, log = browse(probed, tmp_path, f"--window-size={width},900", "--dump-dom")
    assert "CONSOLE" not in log
    (encoded,) = re.findall(r'data-seen="([^"]*)"', dump)
    from urllib.parse import unquote

    seen = json.loads(unquote(encoded))
    (up, rising), (down, falling) = seen["orders"]
    assert (up, down) == ("ascending", "descending")
    assert rising == sorted(rising)
    assert falling == rising[::-1]
    assert seen["images"] == [24] * 4
    assert len(seen["pictures"]) == 4
    assert min(seen["pictures"]) > 100
    assert seen["overflow"] == 0


def test_the_page_can_be_printed(page, tmp_path):
    target = tmp_path / "report.pdf"
    browse(page, tmp_path, f"--print-to-pdf={target}")
    assert target.read_bytes().startswith(b"%PDF")
