"""`tokaido bench suite`, `peers` and `compare`: with all peers, with none, with one that dies in the middle, and its page in a browser."""

import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time
import zlib

import pytest
from support import binary, tokaido, wait_until

SCENARIOS = ["dictionary", "fib", "growth", "hello", "patterns", "regex", "server", "setget"]

# Scenarios that run only when they are named.
FURTHER = ["cache", "commands", "commit", "connections", "handlers", "protocols"]

# Clients of the scenario `setget`.
CLIENTS = {"redis-py", "redis-rb", "hiredis", "pymemcache", "pylibmc", "dalli", "libmemcached"}

# A run must not hang; how long it takes is not tested.
SECONDS_MAX = 600

WIDTH_OF_A_PHONE = 500


def suite(*arguments, **options):
    return tokaido("bench", "suite", "--quick", *arguments, timeout=SECONDS_MAX, **options)


def rows(run):
    return [(item, row) for item in run["items"] for row in item["rows"]]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The directory of a report on everything that is installed."""
    directory = tmp_path_factory.mktemp("report")
    ran = suite("all", "--report", directory)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return directory


def test_every_scenario_has_figures_of_all_that_are_there(report):
    run = json.loads((report / "run.json").read_text())
    assert sorted({item["scenario"] for item in run["items"]}) == sorted(SCENARIOS + FURTHER)
    assert run["failures"] == {}
    for item, row in rows(run):
        problem = row["problem"]
        is_missing = problem is not None and "missing" in problem
        assert is_missing or row["samples"], (item["name"], row)
        assert problem is None or is_missing, (item["name"], row)
    subjects = {row["subject"] for _, row in rows(run) if row["samples"]}
    assert subjects >= {"Tokaido", "redis", "memcached", "nginx", "apache", "ruby", "mruby", "tokyocabinet"}
    missing = {row["settings"] for _, row in rows(run) if row["problem"]}
    asking = {row["settings"] for _, row in rows(run) if row["samples"] and not row["problem"]}
    assert asking >= CLIENTS - missing


def test_what_grows_has_a_curve_over_the_number_of_records(report):
    run = json.loads((report / "run.json").read_text())
    grown = [item for item in run["items"] if item["scenario"] == "growth"]
    # Some file systems do not report what the disk writes.
    assert len([item for item in grown if "written to disk" not in item["name"]]) == 9
    for item in grown:
        assert item["axis"] == "records" and "100,000 records" in item["name"]
        for row in item["rows"]:
            assert [count for count, _ in row["curve"]] == [10_000, 100_000], (item["name"], row)


def test_no_peer_at_all_is_no_failure():
    ran = suite("--peers", "none", "--json")
    assert ran.returncode == 0, ran.stderr
    run = json.loads(ran.stdout)
    assert sorted({item["scenario"] for item in run["items"]}) == SCENARIOS
    for item, row in rows(run):
        assert row["is_ours"] and row["samples"] and row["problem"] is None, (item["name"], row)


def test_what_is_named_is_run_without_peers_too():
    ran = suite("commit", "cache", "--peers", "none", "--json")
    assert ran.returncode == 0, ran.stderr
    run = json.loads(ran.stdout)
    assert {item["scenario"] for item in run["items"]} == {"commit", "cache"}
    assert all(row["is_ours"] and row["samples"] for _, row in rows(run))


def test_a_cache_that_holds_more_records_misses_less(report):
    """Zipf over ten times as many keys as fit: no cache misses everything or nothing."""
    run = json.loads((report / "run.json").read_text())
    misses = [item for item in run["items"] if item["scenario"] == "cache" and "misses" in item["name"]]
    assert len(misses) == 2
    for item in misses:
        assert all(1 < row["samples"][0] < 99 for row in item["rows"] if not row["problem"]), item


def children(parent):
    """The child processes of a process, with their programs."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            name, fields = entry.read_text().split("(", 1)[1].rsplit(")", 1)
        except FileNotFoundError:
            continue
        if int(fields.split()[1]) == parent:
            found[int(entry.parent.name)] = name
    return found


def start(*arguments):
    command = [binary(), "bench", "suite", "--quick", *map(str, arguments)]
    # Its own process group, with interrupts as in a terminal.
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0)


def test_a_peer_that_dies_in_the_middle_is_a_row_that_says_so():
    process = start("server", "--peers", "redis", "--json")

    def redis():
        return [pid for pid, name in children(process.pid).items() if name == "redis-server"]

    wait_until(redis, "a Redis")
    # In the middle: by then it has been filled, and is being measured.
    time.sleep(2)
    os.kill(redis()[0], signal.SIGKILL)
    out, errors = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0, errors
    run = json.loads(out)
    failed = [row for _, row in rows(run) if row["problem"]]
    assert failed and all(row["subject"] == "redis" and row["problem"]["failed"] for row in failed)
    # The others went on, and so did a Redis that was started later.
    assert all(row["samples"] for _, row in rows(run) if row["is_ours"])
    later = [row for item, row in rows(run) if row["subject"] == "redis" and "synced" in item["name"]]
    assert later and all(row["samples"] and row["problem"] is None for row in later)


def test_what_was_measured_until_an_interrupt_is_kept(tmp_path):
    process = start("regex", "server", "--peers", "none", "--report", tmp_path)
    wait_until(lambda: children(process.pid), "a server")
    # By then something has been measured.
    time.sleep(3)
    os.kill(process.pid, signal.SIGINT)
    out, errors = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 130, errors
    assert "stopped early" in out
    run = json.loads((tmp_path / "run.json").read_text())
    assert run["was_stopped"] and run["items"]
    assert children(process.pid) == {}


def test_two_runs_are_compared(report, tmp_path):
    path = report / "run.json"
    same = tokaido("bench", "compare", path, path)
    assert same.returncode == 0 and "Nothing of Tokaido has become worse" in same.stdout
    run = json.loads(path.read_text())
    for item, row in rows(run):
        if row["is_ours"] and item["scenario"] == "server" and item["unit"] == "per_second":
            row["samples"] = [sample / 2 for sample in row["samples"]]
    worse = tmp_path / "worse.json"
    worse.write_text(json.dumps(run))
    compared = tokaido("bench", "compare", path, worse)
    assert compared.returncode == 1 and ": worse" in compared.stdout
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    refused = tokaido("bench", "compare", path, broken)
    assert refused.returncode == 1 and "not a run" in refused.stderr


def test_a_kyoto_tycoon_takes_part(tmp_path, own_server):
    """It runs already, with our script: here it is Tokaido itself."""
    procedures = tmp_path / "procedures"
    procedures.mkdir()
    script = tokaido("bench", "peers", "--kyototycoon-script")
    (procedures / "patterns.lua").write_text(script.stdout)
    with own_server(procedures=procedures) as server:
        address = f"127.0.0.1:{server.port}"
        ran = suite("patterns", "--peers", "none", "--kyototycoon", address, "--json")
    found = [row for _, row in rows(json.loads(ran.stdout)) if row["subject"] == "kyototycoon"]
    assert len(found) == 6 and all(row["samples"] for row in found), found


def test_a_list_of_companies_can_be_given(tmp_path):
    path = tmp_path / "list"
    path.write_text("[section]\n" + "".join(f"{n}\tfirst\tkey {n}\t40.0\t5000\n" for n in range(100)))
    ran = suite("dictionary", "--peers", "none", "--data", path)
    assert ran.returncode == 0 and "write 100 records" in ran.stdout, ran.stderr
    path.write_text("none\n")
    ran = suite("dictionary", "--peers", "none", "--data", path)
    assert ran.returncode == 1 and "has no line of five columns" in ran.stdout


def pixels(path):
    """Width, height, and the colours of the lines of a picture with 8 bits each of red, green and blue, and perhaps alpha."""
    data = path.read_bytes()
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert depth == 8 and kind in (2, 6)
    packed, place = b"", 8
    while place < len(data):
        length, name = struct.unpack(">I4s", data[place : place + 8])
        if name == b"IDAT":
            packed += data[place + 8 : place + 8 + length]
        place += length + 12
    return width, height, len(set(zlib.decompress(packed)))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDTH_OF_A_PHONE, 1200])
def test_a_browser_shows_the_page(report, tmp_path, scheme, width):
    browser = shutil.which("chromium")
    assert browser, "needs the Debian package chromium"
    shot = tmp_path / "page.png"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={tmp_path}/profile"]
    if scheme == "dark":
        options.append("--blink-settings=preferredColorScheme=0")
    page = (report / "index.html").as_uri()
    take = [*options, f"--window-size={width},2000", f"--screenshot={shot}", page]
    subprocess.run([browser, *take], check=True, capture_output=True, timeout=SECONDS_MAX)
    seen_width, height, colours = pixels(shot)
    assert (seen_width, height) == (width, 2000)
    # An empty page, or one of a single colour, has hardly any.
    assert colours > 50
    text = page_text(browser, options, page)
    run = json.loads((report / "run.json").read_text())
    for item, _ in rows(run):
        assert item["name"].replace("<", "&lt;") in text


def page_text(browser, options, page):
    """The page as the browser has rendered it."""
    dump = [browser, *options, "--dump-dom", page]
    return subprocess.run(dump, check=True, capture_output=True, text=True, timeout=SECONDS_MAX).stdout
