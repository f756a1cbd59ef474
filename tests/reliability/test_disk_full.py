"""A full disk: writes fail with a clear error, reads continue, nothing answered is lost, and writes
continue once there is room."""

import pytest
import redis

DISK_BYTES = 24 << 20
VALUE = b"x" * 100_000


@pytest.fixture
def small_disk(disk_of):
    return disk_of(DISK_BYTES)


def fill(client):
    """Puts values until one is refused; returns the answered ones and the refusal."""
    for i in range(2 * DISK_BYTES // len(VALUE)):
        try:
            client.set(f"k{i:04}", VALUE)
        except redis.ResponseError as error:
            return i, str(error)
    raise AssertionError("the disk never filled up")


def test_a_full_disk_loses_nothing_and_ends_when_there_is_room(own_server, small_disk):
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"\0" * (8 << 20))
    server = own_server(small_disk / "data").start()
    client = server.redis()

    count, refusal = fill(client)
    assert "disk is full" in refusal
    assert count > 10
    assert client.get("k0000") == VALUE, "reads go on"
    assert client.exists(f"k{count:04}") == 0, "what was refused is not there"
    assert client.dbsize() == count

    ballast.unlink()
    assert client.set("later", VALUE), "writes go on once there is room"
    server.kill()
    server.start()
    assert server.redis().dbsize() == count + 1
    for i in range(count):
        assert server.redis().get(f"k{i:04}") == VALUE
