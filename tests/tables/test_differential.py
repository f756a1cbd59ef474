"""Random rows and queries, with the same results from Tokyo Cabinet and Tokaido."""

import random
import re

import pytest

from .cabinet import Cabinet
from .conftest import Refused

SEED = 1603
ROWS, QUERIES = 300, 300
WORDS = ["edo", "kyoto", "tokaido", "road", "sea", "mt", "fuji", "station", "fifty", "three", "東海道", "五十三次"]
KINDS = ["LEXICAL", "DECIMAL", "TOKEN", "QGRAM"]
TEXTS = ["STREQ", "STRINC", "STRBW", "STREW", "STRAND", "STROR", "STROREQ", "STRRX"]
NUMBERS = ["NUMEQ", "NUMGT", "NUMGE", "NUMLT", "NUMLE", "NUMBT", "NUMOREQ"]
SEARCHES = ["FTSPH", "FTSAND", "FTSOR", "FTSEX"]
COLUMNS = ["", "name", "age", "text"]


class Lots:
    """Random choices."""

    def __init__(self):
        self.draw = random.Random(SEED)

    def words(self, most):
        return [self.draw.choice(WORDS) for _ in range(self.draw.randint(1, most))]

    def number(self):
        return self.draw.choice([str(self.draw.randint(-20, 120)), f"{self.draw.randint(0, 99) / 4:.2f}", "12x", " 7"])

    def row(self):
        columns = {
            "name": self.draw.choice(WORDS),
            "age": self.number(),
            "text": self.draw.choice([" ", ", "]).join(self.words(6)).upper(),
        }
        return {name: value for name, value in columns.items() if self.draw.random() < 0.8}

    def condition(self):
        column = self.draw.choice(COLUMNS)
        operator = self.draw.choice(self.draw.choice([TEXTS, NUMBERS, SEARCHES]))
        words = self.words(2)
        if operator in NUMBERS:
            operand = self.draw.choice([" ", ","]).join(self.number().strip() for _ in range(2))
        elif operator == "STRRX":
            operand = self.draw.choice(["^{}", "{}$", "*{}", "[a-m]{{2}}", "{}.*{}"]).format(*words, *words)
        elif operator == "FTSEX":
            operand = self.draw.choice([" && ", " || ", " !! ", " "]).join(words)
        elif operator in SEARCHES:
            operand = " ".join(words)
        elif self.draw.random() < 0.5:
            operand = str(self.draw.randint(0, 30))
        else:
            operand = " ".join(words).upper() if column == "text" else " ".join(words)
        flag = self.draw.choice(["", "", "", "~", "+"])
        return ["addcond", column, flag + operator, operand]

    def query(self):
        """Conditions, and then a limit or an order."""
        return [self.condition() for _ in range(self.draw.randint(1, 2))]


def packed(parts):
    return ["\0".join(part).encode() for part in parts]


@pytest.fixture
def both(table, tmp_path):
    """The same rows in both."""
    lots = Lots()
    client, cabinet = table().tyrant(), Cabinet(tmp_path / "people")
    for _ in range(ROWS):
        key, row = str(lots.draw.randint(0, 400)), lots.row()
        arguments = [text.encode() for pair in row.items() for text in pair]
        name = lots.draw.choice(["put", "put", "putkeep", "putcat"])
        expected = cabinet.misc(name, key.encode(), *arguments)
        assert ask(client, name, [key.encode(), *arguments]) == expected
    yield lots, client, cabinet
    cabinet.close()


def ask(client, name, arguments):
    try:
        return client.misc(name, *arguments)
    except Refused:
        return None


def values(client, keys, order):
    """The values that order the rows; rows with equal values may come in any order."""
    column, kind = order
    rows = client.misc("getlist", *keys)
    found = []
    for key, row in zip(rows[::2], rows[1::2], strict=True):
        parts = row.split(b"\0")
        value = (dict(zip(parts[::2], parts[1::2])) | {b"": key}).get(column.encode())
        if value is not None and kind.startswith("NUM"):
            value = float((re.match(rb" *(-?[0-9]+(\.[0-9]+)?)", value) or [b"", b"0"])[1])
        found.append(value)
    return found


def compare(lots, client, cabinet):
    for _ in range(QUERIES):
        query = lots.query()
        expected = cabinet.misc("search", *packed(query))
        found = ask(client, "search", packed(query))
        assert found is not None and sorted(found) == sorted(expected), query
        limit = ["setlimit", str(lots.draw.randint(0, 10)), str(lots.draw.randint(0, 3))]
        counted = packed([*query, limit, ["count"]])
        assert ask(client, "search", counted) == cabinet.misc("search", *counted), (query, limit)
        order = [lots.draw.choice(COLUMNS), lots.draw.choice(["STRASC", "STRDESC", "NUMASC", "NUMDESC"])]
        ordered = packed([*query, ["setorder", *order]])
        in_order = values(client, ask(client, "search", ordered), order)
        assert in_order == values(client, cabinet.misc("search", *ordered), order), (query, order)


def test_queries_find_the_same_with_indexes_and_without(both):
    lots, client, cabinet = both
    compare(lots, client, cabinet)
    # Tokyo Cabinet has none: its indexes split tokens differently from its conditions.
    for kinds in [KINDS, KINDS[1:] + KINDS[:1]]:
        for column, kind in zip(COLUMNS, kinds, strict=True):
            assert client.misc("setindex", column, kind) == []
        compare(lots, client, cabinet)


def test_sets_of_queries_are_the_same(both):
    lots, client, cabinet = both
    for kind in ["UNION", "ISECT", "DIFF"] * 100:
        sets = packed([*lots.query(), ["next"], *lots.query(), ["mstype", kind]])
        found, expected = ask(client, "metasearch", sets), cabinet.misc("metasearch", *sets)
        assert sorted(found) == sorted(expected), sets


def test_rows_come_in_the_same_form(both):
    lots, client, cabinet = both
    for _ in range(300):
        part = lots.draw.choice([["get"], ["get", "name"], ["get", "", "age", "none"], ["columns", "text"]])
        query = packed([*lots.query(), part])
        assert sorted(ask(client, "search", query)) == sorted(cabinet.misc("search", *query)), query
