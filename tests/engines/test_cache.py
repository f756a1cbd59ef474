"""A cache as a database, over the wire."""

import os
import threading

import pytest
import redis
from support import wait_until

from .conftest import client_of


@pytest.fixture(params=[2, 3])
def hot(request, engines):
    with client_of(engines, "hot", protocol=request.param) as client:
        yield client


def test_strings_work_as_in_any_database(hot):
    assert hot.set("k", "v") and hot.get("k") == b"v"
    assert hot.set("k", "w", nx=True) is None
    assert hot.set("k", "w", xx=True, get=True) == b"v"
    assert hot.getset("k", "x") == b"w"
    assert hot.append("k", "yz") == 3 and hot.strlen("k") == 3
    assert hot.getrange("k", 1, -1) == b"yz"
    assert hot.setrange("k", 1, "YY") == 3
    assert hot.getex("k", ex=100) == b"xYY" and 0 < hot.ttl("k") <= 100
    assert hot.getdel("k") == b"xYY" and hot.exists("k") == 0
    assert hot.mset({"a": 1, "b": 2}) and hot.mget("a", "b", "c") == [b"1", b"2", None]
    assert hot.incr("a") == 2 and hot.incrby("a", 40) == 42 and hot.decr("a") == 41
    assert hot.incrbyfloat("a", 0.5) == 41.5
    assert hot.type("a") in (b"string", "string")
    assert hot.rename("a", "d") and hot.get("d") == b"41.5"
    assert hot.delete("b", "d", "none") == 2
    assert hot.dbsize() == 0


def test_records_expire(hot):
    hot.set("k", "v", px=60)
    hot.set("stays", "v")
    assert hot.expire("stays", 100) and hot.persist("stays") and hot.ttl("stays") == -1
    wait_until(lambda: hot.get("k") is None, "its expiry")
    assert hot.ttl("k") == -2
    # It is removed without being accessed.
    wait_until(lambda: hot.dbsize() == 1, "its removal")
    assert hot.get("stays") == b"v"


def test_all_keys_are_found(hot):
    keys = {f"key:{i}".encode() for i in range(1000)}
    with hot.pipeline(transaction=False) as pipeline:
        for key in keys:
            pipeline.set(key, "v")
        pipeline.execute()
    assert set(hot.scan_iter(count=100)) == keys
    assert set(hot.scan_iter(match="key:9*", count=100)) == {k for k in keys if k.startswith(b"key:9")}
    assert set(hot.keys("key:12*")) == {k for k in keys if k.startswith(b"key:12")}
    assert hot.randomkey() in keys
    assert hot.flushdb() and hot.dbsize() == 0 and hot.randomkey() is None


def test_a_full_cache_lets_go_of_what_is_used_least(engines, hot):
    value = os.urandom(1000)
    hot.set("wanted", "here")
    for start in range(0, 6000, 100):
        with hot.pipeline(transaction=False) as pipeline:
            for i in range(start, start + 100):
                pipeline.set(f"filler:{i}", value)
            pipeline.get("wanted")
            assert pipeline.execute()[-1] == b"here"
    numbers = hot.info("databases")["hot"]
    assert numbers["engine"] == "cache" and numbers["bytes"] <= numbers["bytes_max"] == 2 << 20
    assert numbers["evicted"] > 3000 and 1000 < numbers["keys"] < 3000
    _, _, metrics = engines.http("GET", "/metrics")
    assert b'tokaido_cache_evicted_total{database="hot"}' in metrics
    with pytest.raises(redis.ResponseError, match="raise its `bytes_max`"):
        hot.set("too large", os.urandom(2 << 20))
    assert hot.get("wanted") == b"here"


def run_in_threads(count, work):
    """Runs `work(i)` in threads at once, and re-raises one of their errors."""
    errors = []

    def guarded(i):
        try:
            work(i)
        except Exception as error:  # noqa: BLE001 - it is raised below
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_no_increment_is_lost_between_workers(engines):
    clients, each = 8, 300

    def count(i):
        with client_of(engines, "hot") as client, client.pipeline(transaction=i % 2 == 0) as pipeline:
            for _ in range(each // 10):
                for _ in range(10):
                    pipeline.incr("n")
                    pipeline.append("text", "x")
                    pipeline.setrange("places", i * 2, "ab")
                pipeline.execute()
            client.fcall("engines.count", 0, each)

    run_in_threads(clients, count)
    with client_of(engines, "hot") as client:
        assert client.get("n") == str(clients * each).encode()
        assert client.strlen("text") == clients * each
        assert client.get("places") == b"ab" * clients
        assert client.get("count") == str(clients * each).encode()


def test_only_one_of_many_sets_what_is_absent(engines):
    won = []

    def race(i):
        with client_of(engines, "hot") as client:
            for key in range(100):
                if client.set(f"lock:{key}", i, nx=True):
                    won.append(key)

    run_in_threads(6, race)
    assert sorted(won) == list(range(100))


def test_a_transaction_that_fails_leaves_the_cache_as_it_is(engines, hot):
    with pytest.raises(redis.ResponseError, match="no"):
        hot.fcall("engines.fail_after_both", 0)
    assert hot.get("k") == b"cache"
    assert engines.redis().get("k") is None
    with hot.pipeline(transaction=True) as pipeline:
        pipeline.incr("n").execute_command("SELECT", "main").set("t", "text").incr("t")
        with pytest.raises(redis.ResponseError):
            pipeline.execute()
    assert engines.redis().exists("t") == 0
    assert hot.get("n") == b"1"


def test_what_only_a_transaction_can_do_is_refused(hot):
    for refused in [("MSETNX", "a", 1), ("WATCH", "a")]:
        with pytest.raises(redis.ResponseError, match="this database is a cache"):
            hot.execute_command(*refused)


def test_a_restart_begins_empty_and_keeps_the_trees(engines):
    with client_of(engines, "hot") as hot:
        hot.set("k", "v")
    engines.redis().set("k", "v")
    assert engines.stop() == 0
    engines.start()
    with client_of(engines, "hot") as hot:
        assert hot.get("k") is None and hot.set("k", "w")
    assert engines.redis().get("k") == b"v"


def test_http_and_redis_see_the_same_record(engines, hot):
    status, headers, _ = engines.http("PUT", "/v1/db/hot/k", b"v", {"tokaido-ttl-ms": "60000"})
    assert status == 201 and hot.get("k") == b"v" and 0 < hot.pttl("k") <= 60000
    tag = headers["etag"]
    assert engines.http("PUT", "/v1/db/hot/k", b"w", {"if-match": tag})[0] == 204
    assert engines.http("PUT", "/v1/db/hot/k", b"x", {"if-match": tag})[0] == 412
    assert hot.get("k") == b"w"
    assert engines.http("GET", "/v1/db/hot")[2] == b'{"key":"k","value":"w"}\n'
    assert engines.http("DELETE", "/v1/db/hot/k")[0] == 204 and hot.exists("k") == 0
