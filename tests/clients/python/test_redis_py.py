"""redis-py, with its own parser and with hiredis, in both versions of the protocol."""

import threading
import time

import pytest
import redis
from redis._parsers import _HiredisParser, _RESP2Parser, _RESP3Parser
from support import wait_until

PARSERS = {
    "resp2": (2, _RESP2Parser),
    "resp3": (3, _RESP3Parser),
    "resp2-hiredis": (2, _HiredisParser),
    "resp3-hiredis": (3, _HiredisParser),
}


@pytest.fixture(params=PARSERS)
def client(request, server):
    protocol, parser = PARSERS[request.param]
    pool = redis.ConnectionPool(
        host="127.0.0.1", port=server.port, protocol=protocol, parser_class=parser, socket_timeout=30
    )
    with redis.Redis(connection_pool=pool) as client:
        yield client


def test_the_connection_greets_and_echoes(client):
    assert client.ping()
    assert client.echo("日本橋") == "日本橋".encode()


def test_messages_come_to_whoever_subscribed(client, server):
    with client.pubsub() as listener:
        listener.subscribe("news")
        listener.psubscribe("n*")
        assert [next_message(listener)["type"] for _ in range(2)] == ["subscribe", "psubscribe"]
        assert server.redis().publish("news", b"\x00\r\n") == 2
        heard = [next_message(listener) for _ in range(2)]
        assert [(message["type"], message["data"]) for message in heard] == [
            ("message", b"\x00\r\n"), ("pmessage", b"\x00\r\n"),
        ]
        listener.ping()
        assert next_message(listener)["type"] == "pong"
        listener.unsubscribe()
        assert next_message(listener)["type"] == "unsubscribe"
        assert server.redis().publish("news", "x") == 1


def test_changes_of_keys_are_told_of(client, server):
    client.config_set("notify-keyspace-events", "Kg$")
    with client.pubsub() as listener:
        listener.psubscribe("__keyspace@0__:k")
        next_message(listener)
        server.redis().set("k", "v")
        server.redis().delete("k")
        assert [next_message(listener)["data"] for _ in range(2)] == [b"set", b"del"]
    client.config_set("notify-keyspace-events", "")


def test_whoever_waits_is_served(client, server):
    came = []
    waiting = threading.Thread(target=lambda: came.append(client.blpop(["none", "queue"], timeout=30)))
    waiting.start()
    pusher = server.redis()
    wait_until(lambda: pusher.info("clients")["blocked_clients"] == 1, "the client to wait")
    pusher.rpush("queue", "a", "b")
    waiting.join()
    assert came == [[b"queue", b"a"]] or came == [(b"queue", b"a")]
    assert client.blmove("queue", "done", timeout=1) == b"b"
    assert client.brpop("queue", timeout=0.01) is None


def test_streams_are_read_in_groups(client, server):
    client.xadd("s", {"n": 1}, id="1-1")
    client.xgroup_create("s", "g", id="0")
    ids = [client.xadd("s", {"n": n}, maxlen=100) for n in (2, 3)]
    assert [fields[b"n"] for _, fields in client.xrange("s")] == [b"1", b"2", b"3"]
    assert client.xread({"s": ids[0]}) == each_stream(client, [(ids[1], {b"n": b"3"})])
    assert client.xreadgroup("g", "c", {"s": ">"}, count=2) == each_stream(client, [(b"1-1", {b"n": b"1"}), (ids[0], {b"n": b"2"})])
    assert client.xpending("s", "g")["pending"] == 2
    assert client.xack("s", "g", "1-1") == 1
    (pending,) = client.xpending_range("s", "g", "-", "+", 10)
    assert (pending["message_id"], pending["consumer"], pending["times_delivered"]) == (ids[0], b"c", 1)
    assert client.xclaim("s", "g", "d", 0, [ids[0]]) == [(ids[0], {b"n": b"2"})]
    assert client.xautoclaim("s", "g", "c", 0, justid=True) == [ids[0]]
    (group,) = client.xinfo_groups("s")
    assert (group["name"], group["pending"], group["lag"], group["consumers"]) == (b"g", 1, 1, 2)
    assert {one["name"]: one["pending"] for one in client.xinfo_consumers("s", "g")} == {b"c": 1, b"d": 0}
    info = client.xinfo_stream("s")
    assert (info["length"], info["groups"], info["last-generated-id"]) == (3, 1, ids[1])
    assert client.xinfo_stream("s", full=True)["groups"][0]["name"] == b"g"
    came = []
    waiting = threading.Thread(target=lambda: came.append(client.xread({"s": "$"}, block=30_000)))
    waiting.start()
    adder = server.redis()
    wait_until(lambda: adder.info("clients")["blocked_clients"] == 1, "the client to wait")
    last = adder.xadd("s", {"n": 4})
    waiting.join()
    assert came == [each_stream(client, [(last, {b"n": b"4"})])]
    assert client.xtrim("s", maxlen=1, approximate=False) >= 3
    assert client.xgroup_destroy("s", "g")


def each_stream(client, entries):
    """The result of XREAD for one stream: version 3 of the protocol has a map."""
    is_resp3 = client.connection_pool.connection_kwargs.get("protocol") in (3, "3")
    return {b"s": [entries]} if is_resp3 else [[b"s", entries]]


def next_message(listener):
    return listener.get_message(timeout=30)


def test_any_bytes_are_keys_and_values(client):
    key, value = b"\x00\r\n\xff key", bytes(range(256)) * 100
    assert client.set(key, value)
    assert client.get(key) == value
    assert client.strlen(key) == len(value)
    assert client.get("nothing here") is None


def test_set_only_if_absent_or_present(client):
    assert client.set("k", "1", xx=True) is None
    assert client.set("k", "1", nx=True) is True
    assert client.set("k", "2", nx=True) is None
    assert client.set("k", "3", xx=True) is True
    assert client.get("k") == b"3"


def test_set_gives_the_old_value_when_asked(client):
    assert client.set("k", "1", get=True) is None
    assert client.set("k", "2", get=True) == b"1"
    assert client.set("k", "3", get=True, nx=True) == b"2"
    assert client.get("k") == b"2"


@pytest.mark.parametrize("option", ["ex", "px", "exat", "pxat"])
def test_set_with_each_way_to_say_the_expiry(client, option):
    now = time.time()
    value = {"ex": 100, "px": 100_000, "exat": int(now) + 100, "pxat": int(now * 1000) + 100_000}
    client.set("k", "v", **{option: value[option]})
    assert 98 <= client.ttl("k") <= 100
    assert 98_000 <= client.pttl("k") <= 100_000


def test_set_drops_the_expiry_unless_told_to_keep_it(client):
    client.set("k", "1", ex=100)
    client.set("k", "2", keepttl=True)
    assert client.ttl("k") > 0
    client.set("k", "3")
    assert client.ttl("k") == -1


def test_set_with_options_that_contradict_is_refused(client):
    client.set("k", "1")
    for words in (["NX", "XX"], ["EX", "10", "PX", "10"], ["EX", "0"], ["EX", "x"], ["WHAT"]):
        with pytest.raises(redis.ResponseError):
            client.execute_command("SET", "k", "2", *words)
    assert client.get("k") == b"1"


def test_older_forms_of_set(client):
    assert client.setnx("a", "1")
    assert not client.setnx("a", "2")
    assert client.execute_command("SETEX", "b", 100, "1")
    assert client.execute_command("PSETEX", "c", 100_000, "1")
    assert client.execute_command("GETSET", "a", "3") == b"1"
    assert 98 <= client.ttl("b") <= 100 and 98 <= client.ttl("c") <= 100


def test_get_that_changes_the_expiry_or_deletes(client):
    client.set("k", "v", ex=100)
    assert client.getex("k", persist=True) == b"v"
    assert client.ttl("k") == -1
    assert client.getex("k", ex=50) == b"v"
    assert 48 <= client.ttl("k") <= 50
    assert client.getdel("k") == b"v"
    assert client.getdel("k") is None


def test_many_at_once(client):
    assert client.mset({"a": "1", "b": "2", "c": "3"})
    assert client.mget("a", "nothing", "c") == [b"1", None, b"3"]
    assert client.exists("a", "a", "nothing") == 2
    assert client.delete("a", "nothing") == 1
    assert client.unlink("b", "c") == 2
    assert client.dbsize() == 0


def test_counters(client):
    assert client.incr("n") == 1
    assert client.incrby("n", 2**53) == 2**53 + 1
    assert client.decr("n") == 2**53
    assert client.decrby("n", 2**53) == 0
    assert client.incrbyfloat("f", 10.5) == 10.5
    assert client.incrbyfloat("f", "-0.25") == 10.25


def test_counters_refuse_what_is_no_number(client):
    client.set("k", "a word")
    for increment in (client.incr, client.decr, client.incrbyfloat):
        with pytest.raises(redis.ResponseError):
            increment("k")
    client.set("k", 2**63 - 1)
    with pytest.raises(redis.ResponseError, match="overflow"):
        client.incr("k")
    assert client.get("k") == str(2**63 - 1).encode()


def test_parts_of_values(client):
    assert client.append("k", "Hello ") == 6
    assert client.append("k", "World") == 11
    assert client.getrange("k", 0, 4) == b"Hello"
    assert client.getrange("k", -5, -1) == b"World"
    assert client.setrange("k", 6, "Tokyo") == 11
    assert client.get("k") == b"Hello Tokyo"
    assert client.setrange("padded", 3, "x") == 4
    assert client.get("padded") == b"\0\0\0x"


def test_expiry_of_what_is_there(client):
    client.set("k", "v")
    assert client.ttl("k") == -1 and client.ttl("nothing") == -2
    assert client.expire("k", 100) and not client.expire("nothing", 100)
    assert client.expire("k", 50, lt=True) and not client.expire("k", 90, lt=True)
    assert client.expire("k", 90, gt=True) and not client.expire("k", 50, gt=True)
    assert not client.expire("k", 50, nx=True) and client.expire("k", 50, xx=True)
    assert client.pexpire("k", 70_000) and 68 <= client.ttl("k") <= 70
    at = int(time.time()) + 100
    assert client.expireat("k", at) and client.expiretime("k") == at
    assert client.pexpireat("k", at * 1000 + 5) and client.pexpiretime("k") == at * 1000 + 5
    assert client.persist("k") and not client.persist("k")


def test_what_has_expired_is_gone(client):
    client.set("k", "v", px=1)
    client.set("other", "v")
    client.expireat("other", 1)
    time.sleep(0.01)
    assert client.get("k") is None
    assert client.exists("k", "other") == 0
    assert list(client.scan_iter()) == []
    assert client.set("k", "new", nx=True)


def test_keys_are_found_by_pattern_and_by_scan(client):
    with client.pipeline() as pipe:
        for i in range(500):
            pipe.set(f"user:{i:03}", i)
        pipe.set("other", "x")
        pipe.execute()
    users = {f"user:{i:03}".encode() for i in range(500)}
    assert set(client.keys("user:*")) == users
    assert set(client.keys("user:00[1-3]")) == {b"user:001", b"user:002", b"user:003"}
    assert set(client.scan_iter(match="user:*", count=7)) == users
    scanned = list(client.scan_iter(count=50))
    assert len(scanned) == len(set(scanned)) == 501
    assert client.randomkey() in users | {b"other"}


def test_a_scan_sees_what_is_there_throughout_while_others_write(client):
    client.mset({f"stays:{i:03}": i for i in range(300)})
    seen = set()
    cursor = "0"
    for round_ in range(1000):
        cursor, keys = client.scan(cursor=cursor, count=10)
        seen.update(keys)
        client.set(f"comes:{round_}", "x")
        client.delete(f"comes:{round_ - 1}")
        if int(cursor) == 0:
            break
    assert {f"stays:{i:03}".encode() for i in range(300)} <= seen


def test_names_and_kinds(client):
    client.set("a", "1", ex=100)
    assert client.type("a") == b"string" and client.type("nothing") == b"none"
    assert client.rename("a", "b")
    assert client.ttl("b") > 0 and client.exists("a") == 0
    with pytest.raises(redis.ResponseError, match="no such key"):
        client.rename("a", "c")


def test_databases_are_apart(client):
    pool = client.connection_pool
    client.set("k", "in 0")
    other = redis.Redis(host="127.0.0.1", port=pool.connection_kwargs["port"], db=1)
    assert other.get("k") is None
    other.set("k", "in 1")
    assert client.get("k") == b"in 0"
    other.flushdb()
    assert client.get("k") == b"in 0"


def test_a_pipeline_keeps_its_order_and_its_errors_in_place(client):
    with client.pipeline(transaction=False) as pipe:
        for i in range(1000):
            pipe.set(f"k{i}", i)
            pipe.get(f"k{i}")
        pipe.set("word", "x").incr("word").get("word")
        replies = pipe.execute(raise_on_error=False)
    assert replies[1:2000:2] == [str(i).encode() for i in range(1000)]
    assert isinstance(replies[-2], redis.ResponseError)
    assert replies[-1] == b"x"


def test_unknown_commands_and_wrong_numbers_of_arguments_are_named(client):
    with pytest.raises(redis.ResponseError, match="(?i)unknown command.*nonsense"):
        client.execute_command("NONSENSE", "a")
    with pytest.raises(redis.ResponseError, match="(?i)wrong number of arguments.*get"):
        client.execute_command("GET")
    assert client.ping()


def test_text_is_decoded_when_asked_and_bad_text_fails_in_the_client_only(client, server):
    client.set("k", "日本")
    client.set("bad", b"\xff\xfe")
    text = server.redis(decode_responses=True)
    assert text.get("k") == "日本"
    with pytest.raises(UnicodeDecodeError):
        text.get("bad")
    assert text.get("k") == "日本"


def test_info_tells_what_the_store_occupies(client):
    client.set("k", "v")
    occupied = client.info("memory") | client.info("persistence")
    assert occupied["memtable_bytes"] > 0
    assert occupied["memtable_held_bytes"] == 0
    assert occupied["log_bytes"] > 0
    assert occupied["base_bytes"] > 0
