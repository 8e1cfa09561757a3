"""Files of the owner whose tasks are beside this file."""

import csv
import random


def write_table(folder, *, rows=160, seed=0):
    draw = random.Random(seed)  # noqa: S311
    lines = [["age", "weight", "pulse", "sex", "label"]]
    for _ in range(rows):
        age, sex = draw.gauss(50, 15), draw.choice("fm")
        weight = draw.gauss(64 if sex == "f" else 76, 10)
        pulse = draw.gauss(80, 10)
        label = "yes" if age + pulse > 130 else "no"
        lines.append([f"{age:.1f}", f"{weight:.1f}", f"{pulse:.1f}", sex, label])
    write(folder, lines)


def write_texts(folder, *, rows=300, seed=0):
    draw = random.Random(seed)  # noqa: S311
    lines = [["text", "label"]]
    for _ in range(rows):
        words = [draw.randrange(3, 24) for _ in range(draw.randrange(3, 6))]
        label = draw.choice(["bad", "good"])
        words.append(1 if label == "bad" else 2)
        lines.append([" ".join(map(str, words)), label])
    write(folder, lines)


def write(folder, lines):
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "data.csv").open("w", newline="") as file:
        csv.writer(file).writerows(lines)
