"""How the server starts, refuses to start, and stops."""

import os
import socket
import time

import pytest
import redis
from support import PROCEDURES, STOP_SECONDS_MAX, free_port, tokaido


def ends(server):
    """Waits for a server that cannot start to exit; returns its status and log."""
    status = server.spawn().process.wait(STOP_SECONDS_MAX)
    return status, server.log()


def test_a_stopped_server_has_kept_everything(own_server):
    server = own_server(procedures=PROCEDURES).start()
    server.redis().set("k", "v")
    server.redis().fcall("hits.count", 1, "/index")
    assert server.stop() == 0
    server.start()
    assert server.redis().get("k") == b"v"
    assert server.redis().fcall("hits.get", 1, "/index") == b"1"


def test_a_stopping_server_answers_what_it_has_taken(own_server):
    server = own_server().start()
    count = 2000
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    connection.sendall(b"INCR n\r\n" * count)
    stream = connection.makefile("rb")
    assert stream.readline() == b":1\r\n"
    server.process.terminate()
    last = 1
    for line in stream:
        assert line == b":%d\r\n" % (last + 1)
        last += 1
    assert server.process.wait(STOP_SECONDS_MAX) == 0
    server.start()
    assert int(server.redis().get("n")) == last, "answered and counted are two numbers"


def test_a_signal_that_comes_as_soon_as_the_port_is_there_stops_in_order(own_server):
    server = own_server()
    for _ in range(5):
        server.start()
        assert server.stop() == 0, server.log()


def test_a_stopping_server_takes_no_new_connections(own_server):
    server = own_server().start()
    assert server.redis().ping()
    assert server.stop() == 0
    with pytest.raises(redis.ConnectionError):
        server.redis().ping()


def test_a_port_in_use_is_named(own_server):
    first = own_server("first").start()
    status, log = ends(own_server("second", port=first.port))
    assert status == 1
    assert str(first.port) in log and "in use" in log
    assert first.is_alive()


def test_a_second_server_on_the_same_directory_is_refused(own_server):
    first = own_server().start()
    first.redis().set("k", "v")
    status, log = ends(own_server())
    assert status == 3
    assert str(first.directory) in log and "in use by another tokaido process" in log
    assert first.redis().get("k") == b"v"


def test_a_command_on_the_directory_of_a_running_server_is_refused(own_server):
    server = own_server().start()
    done = tokaido("get", "--dir", server.directory, "main", "k")
    assert done.returncode == 3
    assert "in use by another tokaido process" in done.stderr


def test_a_directory_that_cannot_be_made_is_named(own_server, tmp_path):
    (tmp_path / "file").write_text("no directory")
    status, log = ends(own_server("file"))
    assert status == 3
    assert str(tmp_path / "file") in log


def test_a_directory_that_cannot_be_written_is_named(own_server):
    # Not even root can create a directory there.
    status, log = ends(own_server("/proc/tokaido"))
    assert status == 3
    assert "/proc/tokaido" in log and "may write" in log


def test_an_open_address_needs_a_password(own_server):
    server = own_server()
    server.options = ["--listen", f"0.0.0.0:{free_port()}"]
    status, log = ends(server)
    assert status != 0
    assert "password" in log


def test_a_client_without_the_password_gets_nothing(own_server):
    server = own_server(options=["--password", "sesame"]).start()
    with pytest.raises(redis.AuthenticationError):
        server.redis().get("k")
    with pytest.raises(redis.AuthenticationError):
        server.redis(password="wrong").get("k")
    assert server.redis(password="sesame").set("k", "v")
    assert server.http("GET", "/v1/db/main/k")[0] == 401
    right = {"Authorization": "Bearer sesame"}
    assert server.http("GET", "/v1/db/main/k", headers=right)[0] == 200


def test_a_broken_procedure_file_is_named_and_the_others_serve(own_server, tmp_path):
    procedures = tmp_path / "procedures"
    procedures.mkdir()
    (procedures / "good.lua").write_text((PROCEDURES / "hits.lua").read_text())
    (procedures / "broken.lua").write_text("local tokaido = require 'tokaido'\nreturn {{\n")
    (procedures / "raises.lua").write_text("local x = nil\nreturn x.y\n")
    server = own_server(procedures=procedures).start()
    server.wait_for_log("broken.lua:3: ", "raises.lua:2: ")
    assert server.redis().fcall("good.count", 1, "/index") == 1
    with pytest.raises(redis.ResponseError):
        server.redis().fcall("broken.anything", 0)


def test_a_killed_server_leaves_no_lock_behind(own_server):
    server = own_server().start()
    server.kill()
    server.start()
    assert server.redis().ping()


def test_many_clients_that_go_away_in_the_middle_do_no_harm(own_server):
    server = own_server().start()
    for i in range(200):
        connection = socket.create_connection(("127.0.0.1", server.port))
        connection.sendall([b"*3\r\n$3\r\nSET\r\n$1", b"GET ", b"\xff\x00", b""][i % 4])
        connection.close()
    time.sleep(0.1)
    assert server.is_alive()
    descriptors = len(os.listdir(f"/proc/{server.process.pid}/fd"))
    assert descriptors < 100, "connections that are gone are still open"


def test_help_and_version_are_there():
    assert "serve" in tokaido("--help").stdout
    assert tokaido("--version").stdout.startswith("tokaido ")
    wrong = tokaido("serve", "--nonsense")
    assert wrong.returncode == 2 and "--nonsense" in wrong.stderr
