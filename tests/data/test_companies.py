"""Real data: Japanese companies with their market, age and income, and some lines that are section
titles. The program loads it, the example procedure queries it, and the results are compared with what
Python reads from the same file."""

import json
import re
import statistics

import pytest
from support import ROOT, tokaido

FILE = ROOT.parent / "shared" / "data" / "corps_age_income.txt"

pytestmark = pytest.mark.skipif(not FILE.exists(), reason=f"{FILE.name} is not beside the repository")


@pytest.fixture(scope="module")
def rows():
    """The file as Python reads it: code, market, name, age, income."""
    rows = [line.split("\t") for line in FILE.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if len(row) == 5]


def figures(summary):
    """The numbers of the summary that `load` prints, by the words before them."""
    found = re.findall(r"^\s*(\w[\w ]*?)\s+([\d,]+)\b", summary, re.M)
    return {name: int(number.replace(",", "")) for name, number in found}


def check_load(done, rows):
    assert done.returncode == 0, done.stderr
    names = [row[2] for row in rows]
    summary = figures(done.stdout)
    assert summary["stored"] == len(rows) == 2269
    assert summary["overwritten"] == len(names) - len(set(names)) == 20
    assert summary["skipped"] == 72
    titles = [
        number
        for number, line in enumerate(FILE.read_text(encoding="utf-8").splitlines(), 1)
        if len(line.split("\t")) != 5
    ]
    named = [int(number) for number in re.findall(rf"{FILE.name}:(\d+)", done.stderr)]
    assert named == titles, "every skipped line is named"


def test_the_file_is_loaded_into_a_directory_and_read_back(tmp_path, rows):
    load = ["load", "--dir", tmp_path / "data", "--db", "companies", "--key", 3, "--value", 5, FILE]
    check_load(tokaido(*load), rows)
    last = {row[2]: row[4] for row in rows}
    for name in list(last)[::100]:
        done = tokaido("get", "--dir", tmp_path / "data", "companies", name)
        assert done.stdout == last[name] + "\n"
    before = tokaido("dump", "--dir", tmp_path / "data", "--db", "companies").stdout
    again = figures(tokaido(*load).stdout)
    assert again["overwritten"] == again["stored"] == 2269
    assert tokaido("dump", "--dir", tmp_path / "data", "--db", "companies").stdout == before
    assert len(before.splitlines()) == 2249


def test_the_file_is_loaded_into_a_running_server(own_server, rows):
    server = own_server().start()
    load = ["load", "--connect", server.address, "--db", "companies", "--key", 3, "--value", 5, FILE]
    check_load(tokaido(*load), rows)
    name = rows[0][2]
    got = tokaido("get", "--connect", server.address, "companies", name).stdout
    assert got == rows[0][4] + "\n"
    assert server.http("GET", "/v1/db/companies/%E4%B8%89%E6%B5%A6%E5%B7%A5%E6%A5%AD(%E6%A0%AA)")[0] == 200


@pytest.fixture(scope="module")
def incomes(rows):
    """Name to market and income in thousands of yen, if a company reports it; the last row counts."""
    last = {row[2]: (row[1], row[4]) for row in rows}
    parsed = {name: (market, re.match(r"[\d,]+", income)) for name, (market, income) in last.items()}
    return {
        name: (market, int(match[0].replace(",", "")))
        for name, (market, match) in parsed.items()
        if match
    }


@pytest.fixture
def loaded(own_server):
    server = own_server(procedures=ROOT / "procedures").start()
    load = ["load", "--connect", server.address, "--db", "companies", "--key", 3, "--value", "2,4,5", FILE]
    assert tokaido(*load).returncode == 0
    return server


def call(server, procedure, *arguments):
    status, _, body = server.http("POST", f"/v1/call/{procedure}", json.dumps(arguments).encode())
    assert status == 200, body
    return json.loads(body)["result"]


def test_the_mean_income_of_each_market_is_what_python_finds(loaded, incomes):
    by_market = {}
    for market, income in incomes.values():
        by_market.setdefault(market, []).append(income)
    expected = [
        (market, len(all_), pytest.approx(statistics.fmean(all_), rel=1e-12))
        for market, all_ in by_market.items()
    ]
    expected.sort(key=lambda market: -market[2].expected)
    found = call(loaded, "companies.markets")
    assert [(m["market"], m["companies"], m["average_income"]) for m in found] == expected


def test_the_ten_highest_incomes_are_what_python_finds(loaded, incomes):
    order = sorted(incomes.items(), key=lambda item: (-item[1][1], item[0].encode()))
    expected = [{"name": name, "market": market, "income": income} for name, (market, income) in order[:10]]
    assert call(loaded, "companies.top", 10) == expected
