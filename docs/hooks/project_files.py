"""Links of the pages that lead out of docs/, made to work on the site.

    docs/tasks.md  ──../examples/own_model.py──►  project/examples/own_model.py.md

Pages link to the project's other files as they lie in the repository, so that they can
be read there. For the site, each such file becomes a page under ``project/``: Markdown
as it is, anything else as a block of code, a folder as its README or a list.
"""

import json
import os
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\((?!https?:|#|mailto:)(?P<path>[^)#\s]+)(?P<part>#[^)\s]*)?\)")
LANGUAGES = {".py": "python", ".toml": "toml", ".yaml": "yaml", ".service": "ini"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for every file outside docs/ that a page leads to."""
    waiting = [_source(file.src_uri) for file in files.documentation_pages()]
    seen: set[str] = set()
    while waiting:
        source = waiting.pop()
        for link in LINK.finditer((ROOT / source).read_text(encoding="utf-8")):
            target = _target(source, link["path"])
            if target in seen or target.startswith("docs/"):
                continue
            seen.add(target)
            place, text = _page(target)
            files.append(File.generated(config, place, content=text))
            if _has_links(target):
                waiting.append(target)
    return files


def _has_links(source: str) -> bool:
    return Path(source).suffix in (".md", ".ipynb")


def on_page_markdown(
    markdown: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
    """Point links at the pages of the site."""
    del config, files
    own, source = page.file.src_uri, _source(page.file.src_uri)

    def lead(link: re.Match[str]) -> str:
        target = _target(source, link["path"])
        place = _place(target)
        relative = posixpath.relpath(place, posixpath.dirname(own) or ".")
        return f"]({relative}{link['part'] or ''})"

    return LINK.sub(lead, markdown) if _has_links(source) else markdown


def _source(place: str) -> str:
    """Return the file in the repository that a page of the site is made from."""
    outside = place.removeprefix("project/")
    if outside == place:
        return f"docs/{place}"
    return outside if (ROOT / outside).exists() else outside.removesuffix(".md")


def _target(source: str, path: str) -> str:
    """Return where a link leads, as a path in the repository."""
    found = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    readme = posixpath.join(found, "README.md")
    return readme if (ROOT / readme).is_file() else found


def _place(target: str) -> str:
    """Return where the site has a file of the repository."""
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    return f"project/{target}" if target.endswith(".md") else f"project/{target}.md"


def _page(target: str) -> tuple[str, str]:
    """Return the place and the text of the page for a file outside docs/."""
    file = ROOT / target
    if file.is_dir():
        names = sorted(one.name for one in file.iterdir() if one.is_file())
        text = "\n".join(f"* `{name}`" for name in names)
        return _place(target), f"# {target}\n\n{text}\n"
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".ipynb":
        text = _cells(text)
    elif file.suffix != ".md":
        language = LANGUAGES.get(file.suffix, "")
        text = f"# {target}\n\n```{language}\n{text.rstrip(os.linesep)}\n```\n"
    return _place(target), text


def _cells(notebook: str) -> str:
    """Return a notebook as Markdown, its code as blocks."""
    found = []
    for cell in json.loads(notebook)["cells"]:
        text = "".join(cell["source"])
        is_code = cell["cell_type"] == "code"
        found.append(f"```python\n{text}\n```" if is_code else text)
    return "\n\n".join(found) + "\n"
