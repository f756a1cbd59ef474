"""Scripts that clients send, with redis-py and libraries built on it."""

import threading

import pytest
import redis


@pytest.fixture(params=[2, 3])
def client(request, server):
    with server.redis(protocol=request.param) as client:
        yield client


def test_a_registered_script_is_sent_once_and_then_called_by_its_name(client):
    script = client.register_script("return redis.call('incrby', KEYS[1], ARGV[1])")
    client.script_flush()
    assert client.script_exists(script.sha) == [False]
    assert [script(keys=["n"], args=[by]) for by in (1, 2, 3)] == [1, 3, 6]
    assert client.script_exists(script.sha) == [True]
    client.script_flush()
    assert script(keys=["n"], args=[4]) == 10
    with client.pipeline() as pipeline:
        script(keys=["n"], args=[5], client=pipeline)
        pipeline.get("n")
        assert pipeline.execute() == [15, b"15"]


def test_a_failed_script_leaves_nothing(client):
    with pytest.raises(redis.ResponseError, match="value is not an integer"):
        client.eval("redis.call('set', KEYS[1], 'x') return redis.call('incr', KEYS[1])", 1, "n")
    assert client.exists("n") == 0


def test_locks_are_taken_extended_and_given_back(client):
    """SET NX takes a lock, and everything else about it is a script."""
    lock = client.lock("lock", timeout=60)
    assert lock.acquire(blocking=False)
    other = client.lock("lock", timeout=60)
    assert not other.acquire(blocking=False)
    assert lock.extend(30) and client.pttl("lock") > 60_000
    assert lock.reacquire() and client.pttl("lock") <= 60_000
    lock.release()
    assert client.exists("lock") == 0
    with pytest.raises(redis.exceptions.LockError):
        lock.release()
    assert other.acquire(blocking=False)
    client.set("lock", "stolen")
    with pytest.raises(redis.exceptions.LockNotOwnedError):
        other.release()


def test_a_lock_lets_in_one_at_a_time(client, server):
    def work():
        with server.redis() as own:
            for _ in range(20):
                with own.lock("lock", timeout=60, sleep=0.001):
                    own.set("n", int(own.get("n")) + 1)

    client.set("n", 0)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.get("n") == b"80"


LIMITER = """
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return count <= tonumber(ARGV[1]) and 1 or 0
"""


def test_a_rate_limiter(client):
    allow = client.register_script(LIMITER)
    assert [allow(keys=["rate"], args=[3, 60_000]) for _ in range(5)] == [1, 1, 1, 0, 0]
    assert 0 < client.pttl("rate") <= 60_000
