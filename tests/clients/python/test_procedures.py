"""Lua procedures, called with redis-py."""

import time

import pytest
import redis


@pytest.fixture(params=[2, 3])
def client(request, server):
    with server.redis(protocol=request.param) as client:
        yield client


def test_a_procedure_is_called_as_a_function_or_by_its_name(client):
    assert client.fcall("hits.count", 1, "/index") == 1
    assert client.execute_command("hits.count", "/index") == 2
    assert client.fcall("hits.get", 1, "/index") == b"2"
    assert client.fcall_ro("hits.get", 1, "/index") == b"2"


def test_a_procedure_that_writes_is_refused_where_only_reading_is_allowed(client):
    with pytest.raises(redis.ResponseError):
        client.fcall_ro("hits.count", 1, "/index")
    assert client.fcall("hits.get", 1, "/index") is None


def test_arguments_arrive_as_bytes_in_order(client):
    assert client.fcall("values.echo", 1, "key", b"\x00\xff", "日本") == [b"key", b"\x00\xff", "日本".encode()]
    assert client.execute_command("values.echo") == []


def test_results_of_each_kind(client):
    text, number, boolean, array = client.fcall("values.kinds", 0)
    assert (text, number, array) == (b"text", 42, [1, 2])
    assert boolean in (True, 1)
    assert client.fcall("values.none", 0) is None


def test_an_error_names_file_and_line_and_leaves_nothing(client):
    client.fcall("hits.count", 1, "/x")
    with pytest.raises(redis.ResponseError, match=r"hits\.lua:\d+: refused on purpose"):
        client.fcall("hits.count_and_fail", 1, "/x")
    assert client.fcall("hits.get", 1, "/x") == b"1"


def test_a_procedure_that_is_not_there_is_an_error(client):
    with pytest.raises(redis.ResponseError, match="not found"):
        client.fcall("hits.nothing", 0)
    with pytest.raises(redis.ResponseError, match="unknown command 'hits.nothing'"):
        client.execute_command("hits.nothing")


@pytest.mark.parametrize("name", ["runaway.spin", "runaway.spin_protected", "runaway.hoard"])
def test_a_runaway_is_stopped_leaves_nothing_and_others_go_on(client, name):
    start = time.monotonic()
    with pytest.raises(redis.ResponseError, match="limit"):
        client.fcall(name, 0)
    assert time.monotonic() - start < 20
    assert client.exists("spinning", "hoarding") == 0
    assert client.fcall("hits.count", 1, "/after") == 1


def test_readers_do_not_wait_for_a_runaway_writer(client, server):
    other = server.redis()
    other.set("k", "v")
    connection = other.connection_pool.get_connection()
    connection.send_command("FCALL", "runaway.spin", "0")
    assert client.get("k") == b"v"
    assert not connection.can_read(timeout=0), "the read was answered while the writer ran"
    with pytest.raises(redis.ResponseError):
        connection.read_response()
