"""Result files of experiments, and the tables of pages that are written from them. See scripts/write-figures.

A result file has the command that measured, the commit of the checkout that it ran in, the date, the machine, and the
results: a list of records, which are flat. Each record has a line, so that a difference between two commits can be read."""

import datetime
import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bywash_lab.places import ROOT
from bywash_lab.reports import fail, save

RESULTS = ROOT / "docs/figures/results"
MARKED = re.compile(r"(<!-- (table|recorded|value) ([^>]*?)\s*-->)(.*?)(<!-- end -->)", re.DOTALL)
FIELD = re.compile(r"\{([^{}:|]+)(?::([^{}|]*))?(?:\|([^{}]*))?\}")

Record = dict[str, Any]
Read = Callable[[str], Record]


def origin(folder: Path | None = None) -> dict[str, str]:
    """Returns the commit of a checkout (by default, of the working directory), the date and the machine."""
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", ":(top)", ":(top,exclude)docs",
                  ":(top,exclude)README.md")
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return {"commit": git("rev-parse", "--short=8", "HEAD") + (" with changes" if changed else ""),
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "machine": f"{os.cpu_count()} cores, {model[1] if model else os.uname().machine}, Linux {os.uname().release}"}


def write(name: str, command: str, results: Iterable[Record], **known: str) -> None:
    """Writes a result file. `known` replaces parts of its origin."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    head = json.dumps({"command": command, **origin(), **known}, ensure_ascii=False, indent=1).removesuffix("\n}")
    records = ",\n".join("  " + json.dumps(record, ensure_ascii=False) for record in results)
    save(RESULTS / f"{name}.json", f'{head},\n "results": [\n{records}\n ]\n}}\n')


def read(name: str) -> Record:
    """Returns the content of a result file."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        fail(f"{path} does not exist: measure it, or correct the name in the page")
    found: Record = json.loads(path.read_text())
    return found


def records(output: Record, classes: bool) -> list[Record]:
    """Returns the flat records of what `bywash lab … --json` printed. A phase of a cell has a record of its own. The values of
    a class have its name before theirs, if `classes` are wanted."""
    found = []
    seeds = output["seeds"]
    common = {"scenario": output.get("scenario"), "seeds": len(seeds) if isinstance(seeds, list) else seeds}
    for cell in next(output[key] for key in ("cells", "fleets") if key in output):
        named = {one["class"]: one for one in cell.get("classes", []) if classes}
        for number, phase in enumerate(cell.get("phases", [{}])):
            found.append(common | flat(cell) | flat(named) | flat({"phase": number} | phase if phase else {}))
    return found


def flat(record: Record) -> Record:
    """Returns the record without lists. Values of an inner record have its name before theirs."""
    found: Record = {}
    for key, value in record.items():
        if isinstance(value, dict):
            found |= {f"{key}.{inner}": one for inner, one in flat(value).items()}
        elif not isinstance(value, list):
            found[key] = value
    return found


def written(page: str, read: Read = read) -> str:
    """Returns the page with the tables and values of its result files."""
    if len(re.findall("<!-- (?:table|recorded|value) ", page)) != page.count("<!-- end -->"):
        fail("a mark <!-- table … -->, <!-- recorded … --> or <!-- value … --> has no <!-- end -->, or the reverse")

    def content(mark: re.Match[str]) -> str:
        words = shlex.split(mark[3])
        if mark[2] == "value":
            return mark[1] + value(words, read) + mark[5]
        text = f"\n\n{table(words, read)}\n\n" if mark[2] == "table" else f"\n{recorded(words, read)}\n"
        return mark[1] + text + mark[5]
    return MARKED.sub(content, page)


def recorded(names: list[str], read: Read) -> str:
    """Returns a sentence with the commits and dates of result files."""
    found = dict.fromkeys(f"commit {one['commit']} ({one['date']})" for one in map(read, names))
    return f"Recorded in {' and '.join(found)}."


def value(words: list[str], read: Read) -> str:
    """Returns a template, the last word, with the values of the only record that the other words choose."""
    if not FIELD.search(words[-1]):
        fail(f"{words[-1]} is no template: it has no field, such as {{key}}")
    found = Layout(words[:-1]).records(read)
    if len(found) != 1:
        fail(f"{' '.join(words[:-1])} chooses {len(found)} results, not one")
    return filled(words[-1], found[0])


class Layout:
    """The words of a mark `table`, which scripts/write-figures explains."""

    def __init__(self, words: list[str]) -> None:
        given: dict[str, list[str]] = {}
        for word in words[1:]:
            key, _, value = word.partition("=")
            given.setdefault(key, []).append(value)
        self.names = words[0].split(",")
        self.rows = given.pop("rows", [])
        self.head, self.cell, across, titles = (given.pop(key, [""])[0] for key in ("head", "cell", "columns", "titles"))
        self.across = across.split(",") if across else []
        self.titles = titles.split("|") if titles else []
        self.own = {title: one[0] for title, one in given.items() if one[0].startswith("{")}
        self.where = {key: one[0].split("|") for key, one in given.items() if key not in self.own}

    def records(self, read: Read) -> list[Record]:
        """Returns the records that the table shows."""
        every = [one | {"result": name} for name in self.names for one in read(name)["results"]]
        found = [one for one in every if all(text(one, key) in values for key, values in self.where.items())]
        return found or fail(f"no result of {', '.join(self.names)} has {self.where}")

    def across_columns(self, records: list[Record]) -> list[tuple[str, tuple[str, ...]]]:
        """Returns the columns that records are spread over: the title, and the values of the records in it."""
        first: dict[tuple[str, ...], Record] = {}
        for one in records if self.across else []:
            first.setdefault(values(one, self.across), one)
        titles = self.titles or [filled(self.head, one) for one in first.values()]
        if len(titles) != len(first):
            fail(f"{', '.join(self.names)}: {len(titles)} titles for {len(first)} columns")
        return list(zip(titles, first, strict=True))


def table(words: list[str], read: Read) -> str:
    """Returns a Markdown table. The words are those of a mark."""
    layout = Layout(words)
    records = layout.records(read)
    columns = layout.across_columns(records)
    keys = [key.rpartition("=")[2] for key in layout.rows]
    rows: dict[tuple[str, ...], list[Record]] = {}
    for one in records:
        rows.setdefault(values(one, keys), []).append(one)
    titles = [key.rpartition("=")[0] or key for key in layout.rows] + [*(title for title, _ in columns), *layout.own]
    lines = [f"| {' | '.join(titles)} |", "|" + "---|" * len(titles)]
    for label, row in rows.items():
        cells = [joined(layout.cell, [one for one in row if values(one, layout.across) == column]) for _, column in columns]
        lines.append(f"| {' | '.join([*label, *cells, *(joined(cell, row) for cell in layout.own.values())])} |")
    return "\n".join(lines)


def joined(template: str, records: list[Record]) -> str:
    return ", ".join(filled(template, one) for one in records) or "–"


def values(record: Record, keys: list[str]) -> tuple[str, ...]:
    return tuple(text(record, key) for key in keys)


def text(record: Record, key: str) -> str:
    value = value_of(record, key)
    return f"{value:g}" if isinstance(value, float) else str(value)


def value_of(record: Record, key: str) -> Any:
    return record[key] if key in record else fail(f"a result has no {key}, but {', '.join(record)}")


def filled(template: str, record: Record) -> str:
    """Returns the template with the record's values in its fields."""
    def field(found: re.Match[str]) -> str:
        terms, _, below = found[1].partition("/")
        above = total(record, terms)
        base = total(record, below) if below else 1
        if above is None or not base:
            return found[3] or "–"
        if not found[2]:
            return text(record, found[1])
        share = found[2].endswith("%")
        return f"{above / base * 100:{found[2][:-1]}f}" if share else f"{above / base:{found[2]}}"
    return FIELD.sub(field, template)


def total(record: Record, terms: str) -> Any:
    """Returns the value of a key, or the sum of several, such as `generated+not_generated`; none if one is missing."""
    first, *others = (value_of(record, key) for key in terms.split("+"))
    return None if None in (first, *others) else sum(others, first) if others else first
