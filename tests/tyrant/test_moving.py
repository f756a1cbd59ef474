"""Records move as lines of a key, a tab and a value, as Tokyo Tyrant's tool prints and reads them."""

from support import tokaido

RECORDS = {
    b"empty": b"",
    b"plain": b"value",
    b"spaces and \xff": b" \tmore\ttabs ",
    "東京".encode(): "品川".encode(),
}


def listed(client):
    """The output of `tcrmgr list -pv`: keys from the iterator, each with the result of a get."""
    client.iterinit()
    keys = [client.iternext() for _ in range(client.rnum())]
    return b"".join(key + b"\t" + client.get(key) + b"\n" for key in keys)


def imported(client, lines):
    """Does what `tcrmgr importtsv` does: puts what follows the first tab of each line."""
    for line in lines.splitlines():
        key, _, value = line.partition(b"\t")
        client.put(key, value)


def test_there_and_back(tyrant, tmp_path):
    client = tyrant()
    for key, value in RECORDS.items():
        client.put(key, value)
    # The tool prints a carriage return unchanged, and would not read it back.
    client.put(b"return", b"v\r")
    lines = listed(client)
    assert lines.count(b"\n") == len(RECORDS) + 1

    server, path = tyrant.server, tmp_path / "records.list"
    path.write_bytes(lines)
    client.vanish_all()
    assert client.rnum() == 0
    options = ["--connect", f"127.0.0.1:{server.port}", "--db", "main", "--format", "tyrant-tsv"]
    loaded = tokaido("load", *options, "--strict", path)
    assert loaded.returncode == 0, loaded.stderr
    assert listed(client) == lines

    refused = tokaido("dump", *options, text=False)
    assert refused.returncode == 1 and b"a carriage return" in refused.stderr
    client.out(b"return")
    dumped = tokaido("dump", *options, text=False)
    assert dumped.returncode == 0, dumped.stderr
    client.vanish_all()
    imported(client, dumped.stdout)
    assert {key: client.get(key) for key in RECORDS} == RECORDS
    assert client.rnum() == len(RECORDS)
