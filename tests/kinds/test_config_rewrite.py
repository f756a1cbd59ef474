"""CONFIG REWRITE: the changes of CONFIG SET persist, and the rest of the file is unchanged."""

import os

import pytest
import redis
from support import Server

FILE = """# The office's server.
workers = 1 # it is small

[redis]
slowlog_entries_max = 5 # few
"""


@pytest.fixture
def server(tmp_path):
    (tmp_path / "t.toml").write_text(FILE)
    with Server(tmp_path / "data", tmp_path / "log", options=["--config", str(tmp_path / "t.toml"), "--sync", "os"]) as server:
        yield server


def connect(server):
    return redis.Redis(port=server.port, decode_responses=True)


def test_what_was_set_is_there_after_the_next_start(server, tmp_path):
    client = connect(server)
    client.config_set("slowlog-max-len", 7, "notify-keyspace-events", "KEA", "slowlog-log-slower-than", -1)
    assert client.config_rewrite() == "OK"
    added = 'slowlog_entries_max = 7 # few\nnotify_keyspace_events = "AKE"\nslowlog_slower_than_us = -1\n'
    assert sorted((tmp_path / "t.toml").read_text().splitlines()) == sorted((FILE.replace("slowlog_entries_max = 5 # few\n", added)).splitlines())
    assert not (tmp_path / "t.toml.new").exists()
    client.close()
    server.stop()
    server.start()
    wanted = {"slowlog-max-len": "7", "notify-keyspace-events": "AKE", "slowlog-log-slower-than": "-1"}
    assert connect(server).config_get(*wanted) == wanted


def test_nothing_changed_leaves_the_file_alone(server, tmp_path):
    before = os.stat(tmp_path / "t.toml")
    assert connect(server).config_rewrite() == "OK"
    assert os.stat(tmp_path / "t.toml").st_ino == before.st_ino
    assert (tmp_path / "t.toml").read_text() == FILE


def test_a_file_that_was_broken_meanwhile_is_not_replaced(server, tmp_path):
    client = connect(server)
    client.config_set("slowlog-max-len", 9)
    (tmp_path / "t.toml").write_text("workers = one\n")
    with pytest.raises(redis.ResponseError, match="Rewriting config file: .*no configuration any more"):
        client.config_rewrite()
    assert (tmp_path / "t.toml").read_text() == "workers = one\n"


def test_without_a_file_it_says_so_as_redis_does(tmp_path, monkeypatch, redis_port):
    # It must not start where there is a tokaido.toml, which it would read.
    monkeypatch.chdir(tmp_path)
    with Server(tmp_path / "data", tmp_path / "log", options=["--sync", "os"]) as server:
        for port in (server.port, redis_port):
            with pytest.raises(redis.ResponseError, match="^The server is running without a config file$"):
                redis.Redis(port=port).config_rewrite()
