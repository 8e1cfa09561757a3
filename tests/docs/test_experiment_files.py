"""The page of settings lists every setting, as the tables have it.

python tests/docs/test_experiment_files.py      writes the lists into the page
"""

import inspect
from pathlib import Path

from lightsplit.experiments import make_experiment, read_experiment
from lightsplit.experiments.parts import GIVEN, REGISTRIES, describe_option
from lightsplit.experiments.settings import FIELDS
from lightsplit.part_options import known_options
from lightsplit.results.settings import short_name
from lightsplit.sweeps.cells import expand
from lightsplit.sweeps.sweep_file import read_sweep

PAGE = "docs/experiment-files.md"
START, END = "<!-- settings: generated -->\n", "<!-- end of settings -->\n"
TABLES = (
    "codec",
    "output_codec",
    "augment",
    "objective",
    "protect_labels",
    "detector",
)  # parts whose options are explained


def shown(value):
    absent = value is None or type(value).__name__ == "PydanticUndefinedType"
    return "" if absent or value is inspect.Parameter.empty else f"`{value}`".lower()


def cell(text):
    return " ".join(text.replace("|", "\\|").replace("``", "`").split()).rstrip(".")


def settings(table):
    yield f"\n### `[{table}]`\n\n{cell(FIELDS[table].__doc__)}.\n"
    yield "| setting | flag | default | meaning |\n|---|---|---|---|"
    for name, field in FIELDS[table].model_fields.items():
        flag = short_name(f"{table}.{name}").replace("_", "-")
        default, text = shown(field.default), cell(field.description)
        yield f"| `{name}` | `--{flag}` | {default} | {text} |"


def options(table, name):
    part = REGISTRIES[table].get(name)
    return known_options(part, given=GIVEN[table] | set(getattr(part, "needs", ())))


def explained(table):
    yield f"\n### Options of each {table.replace('_', ' ')}\n"
    yield "| name | option | default | meaning |\n|---|---|---|---|"
    for name in REGISTRIES[table].names():
        known = options(table, name)
        if not known:
            yield f"| `{name}` | none | | |"
        for option, parameter in known.items():
            text = cell(describe_option(REGISTRIES[table].get(name), option))
            yield f"| `{name}` | `{option}` | {shown(parameter.default)} | {text} |"


def attacks():
    yield "\n### Options of each attack\n"
    yield "| name | options and their defaults; without one, the budget decides |"
    yield "|---|---|"
    for name in REGISTRIES["attack"].names():
        known = options("attack", name).values()
        texts = [f"{p.name} {shown(p.default)}".strip() for p in known]
        yield f"| `{name}` | {', '.join(texts) or 'none'} |"


def lists():
    lines = [line for table in FIELDS for line in settings(table)]
    lines += [line for table in TABLES for line in explained(table)]
    return "\n".join([*lines, *attacks()]).lstrip("\n") + "\n\n"


def test_the_page_lists_every_setting_as_the_tables_have_it(text):
    _, _, rest = text(PAGE).partition(START)
    written, _, _ = rest.partition(END)
    assert written.strip() == lists().strip()


def test_the_files_on_the_page_are_read(blocks, tmp_path):
    files = blocks(PAGE, "toml")
    assert len(files) == 3
    for number, content in enumerate(files):
        file = tmp_path / f"{number}.toml"
        file.write_text(content)
        if "[grid]" in content:
            assert expand(read_sweep(file))
        else:
            make_experiment(read_experiment(file))


if __name__ == "__main__":
    page = Path(__file__).parents[2] / PAGE
    before, _, rest = page.read_text().partition(START)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{START}\n{lists()}{END}{after}")
