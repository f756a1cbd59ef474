"""What Tokyo Tyrant clients can do with a table, and that its indexes follow every protocol."""

import pytest
from redis.exceptions import ResponseError
from support import tokaido, wait_until

from .conftest import Refused

ROWS = {
    "1": {"name": "Ieyasu", "age": "73", "lives": "Edo, Sunpu"},
    "2": {"name": "Hiroshige", "age": "61", "lives": "Edo", "work": "The Fifty-three Stations of the Tōkaidō"},
    "3": {"name": "Basho", "age": "50", "work": "The Narrow Road"},
    "4": {"name": "Hokusai", "age": "88", "lives": "Edo", "work": "Thirty-six Views"},
}


@pytest.fixture
def filled(table):
    """A server and a client, with the rows in place."""
    server = table()
    client = server.tyrant()
    for key, columns in ROWS.items():
        client.put(key, **columns)
    return server, client


def test_rows(filled):
    _, client = filled
    assert client.misc("get", "1") == [b"name", b"Ieyasu", b"age", b"73", b"lives", b"Edo, Sunpu"]
    with pytest.raises(Refused, match="22: no record"):
        client.misc("get", "9")
    with pytest.raises(Refused, match="21: existing"):
        client.misc("putkeep", "1", "name", "x")
    assert client.misc("putkeep", "5", "name", "Issa", "name", "Kobayashi") == []
    assert client.misc("putcat", "5", "name", "x", "age", "64") == []
    assert client.misc("getlist", "5", "none") == [b"5", b"name\0Kobayashi\0age\x0064"]
    with pytest.raises(Refused, match="2: invalid"):
        client.misc("put", "6", "name", b"a\0b")
    assert client.misc("outlist", "5", "6") == []
    assert [client.misc("genuid") for _ in range(2)] == [[b"1"], [b"2"]]


def test_queries(filled):
    _, client = filled
    order = ("setorder", "age", "NUMDESC")
    assert client.search(("addcond", "age", "NUMGE", "61"), order) == ["4", "1", "2"]
    assert client.search(("addcond", "lives", "STRAND", "Edo"), order, ("setlimit", "1", "1")) == ["1"]
    assert client.search(("addcond", "work", "~STRINC", "Road"), order) == ["4", "1", "2"]
    assert client.search(("addcond", "work", "FTS", "TOKAIDO")) == ["2"]
    assert client.search(("addcond", "", "STROREQ", "1 3"), order, "count") == ["2"]
    assert client.search(("addcond", "name", "0", "Basho"), ("get", "name", "age")) == ["name\0Basho\0age\x0050"]
    assert client.search(("addcond", "name", "STREQ", "Basho"), "get")[0].startswith("\x003\0name\0Basho")
    for wrong in [("addcond", "a", "NEAR", "1"), ("addcond", "a"), ("setorder", "a", "UP"), ("addcond", "a", "RX", "(")]:
        with pytest.raises(Refused, match="2: invalid"):
            client.search(wrong)
    assert client.search(("addcond", "age", "NUMLT", "61"), "out", ("get", "name")) == ["name\0Basho"]
    assert client.search(order) == ["4", "1", "2"]


def test_sets_of_queries(filled):
    _, client = filled
    of_edo, old = ("addcond", "lives", "STROR", "Edo"), ("addcond", "age", "NUMGT", "70")
    order = ("setorder", "age", "NUMASC")

    def found(kind):
        return client.search(of_edo, order, "next", old, ("mstype", kind), name="metasearch")

    assert found("UNION") == ["2", "1", "4"]
    assert sorted(found("ISECT")) == ["1", "4"]
    assert found("DIFF") == ["2"]


def hint(client, *parts):
    found = client.search(*parts, "hint")
    assert found[-1].startswith("\0\0[[HINT]]\n")
    return found[:-1], found[-1]


def test_indexes(filled):
    _, client = filled
    by_name, by_age = ("addcond", "name", "STRBW", "H"), ("addcond", "age", "NUMBT", "60 80")
    for parts, column, kind in [((by_name,), "name", "LEXICAL"), ((by_age,), "age", "DECIMAL")]:
        before, way = hint(client, *parts)
        assert "whole table" in way
        assert client.misc("setindex", column, kind) == []
        after, way = hint(client, *parts)
        assert f'using an index: "{column}"' in way and sorted(after) == sorted(before) != []
    for refused in ["+LEXICAL", "HASH"]:
        with pytest.raises(Refused, match="2: invalid"):
            client.misc("setindex", "name", refused)
    with pytest.raises(Refused):
        client.misc("setindex", "none", "VOID")
    assert client.misc("setindex", "name", "OPT", "age", "VOID") == []
    assert 'using an index: "name"' in hint(client, by_name)[1]
    assert "whole table" in hint(client, by_age)[1]


def test_indexes_follow_every_protocol_and_survive(filled):
    server, client = filled
    client.misc("setindex", "name", "LEXICAL", "age", "DECIMAL", "work", "QGRAM")

    def named(name):
        found, way = hint(client, ("addcond", "name", "STREQ", name))
        assert "using an index" in way
        return found

    with server.redis(db="people") as redis:
        redis.set("r", "name\0Ryoma\0age\x0031")
        redis.hset("hash", "name", "Ryoma")
        assert named("Ryoma") == ["r"]
        redis.rename("r", "1")
        assert (named("Ryoma"), named("Ieyasu")) == (["1"], [])
        redis.pexpire("1", 1)
        redis.set("m", "name\0Murasaki", px=100_000)
        assert server.http("PUT", "/v1/db/people/h", b"name\0Hideyoshi")[0] in (201, 204)
        # A failing script leaves nothing behind, neither a row nor an index entry.
        with pytest.raises(ResponseError, match="WRONGTYPE"):
            redis.eval("redis.call('SET', '3', ARGV[1]) redis.call('INCR', 'hash')", 0, "name\0x")
    assert named("x") == [] and named("Basho") == ["3"]
    assert named("Hideyoshi") == ["h"] and named("Murasaki") == ["m"]
    assert named("Ryoma") == []

    assert server.stop() == 0
    check = tokaido("check", server.directory)
    assert check.returncode == 0, check.stdout
    # A command without a configuration updates the indexes, too.
    line = '{"key": "t", "value": "name\\u0000Tsunayoshi"}'
    loaded = tokaido("load", "--dir", server.directory, "--db", "people", "-", input=line, stdin=None)
    assert loaded.returncode == 0, loaded.stderr
    server.start()
    client = server.tyrant()
    assert named("Hideyoshi") == ["h"] and named("Tsunayoshi") == ["t"]
    with server.redis(db="people") as redis:
        keys = set(redis.scan_iter())
        assert redis.dbsize() >= len(keys) and all(b"\0" not in key for key in keys)
        redis.flushdb()
    assert named("Hideyoshi") == []
    client.put("n", name="Hideyoshi")
    assert named("Hideyoshi") == ["n"]


def test_an_index_of_many_rows_is_built_in_the_background(table, tmp_path):
    server = table()
    client, rows = server.tyrant(), 25_000
    with server.redis(db="people") as redis:
        pipeline = redis.pipeline(transaction=False)
        for number in range(rows):
            pipeline.set(f"row:{number}", f"age\0{number}")
        pipeline.execute()
        query = ("addcond", "age", "NUMLT", "3"), ("setorder", "age", "NUMASC")
        expected = [f"row:{number}" for number in range(3)]
        assert client.misc("setindex", "age", "DECIMAL") == []
        assert hint(client, *query)[0] == expected
        redis.set("row:24999", "age\x00-1")
        wait_until(lambda: "using an index" in hint(client, *query)[1], "the index")
        assert hint(client, *query)[0] == ["row:24999", *expected]
    # A backup contains the index.
    saved = tmp_path / "saved"
    assert tokaido("backup", server.directory, saved).returncode == 0
    assert server.stop() == 0
    server.directory = saved
    server.start()
    found, way = hint(server.tyrant(), *query)
    assert found == ["row:24999", *expected] and "using an index" in way


def test_what_is_no_table_has_no_queries(table):
    server = table("main")
    client = server.tyrant()
    assert client.misc("put", "k", "v") == []
    for name in ["setindex", "search", "metasearch", "genuid"]:
        with pytest.raises(Refused, match="2: invalid"):
            client.misc(name)
