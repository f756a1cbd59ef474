"""Reloading procedures: by SIGHUP, by `tokaido reload`, and with a broken file."""

import signal

from support import tokaido, wait_until

FILE = 'local tokaido = require "tokaido" return {{ version = tokaido.read(function() return {} end) }}'


def test_sighup_swaps_the_program_and_a_broken_file_keeps_it(own_server, tmp_path):
    procedures = tmp_path / "procedures"
    procedures.mkdir()
    (procedures / "t.lua").write_text(FILE.format(1))
    server = own_server(procedures=procedures).start()
    client = server.redis()
    assert client.execute_command("t.version") == 1

    (procedures / "t.lua").write_text(FILE.format(2))
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: client.execute_command("t.version") == 2, "the new program")

    (procedures / "broken.lua").write_text("return {")
    (procedures / "t.lua").write_text(FILE.format(3))
    server.process.send_signal(signal.SIGHUP)
    server.wait_for_log("cannot reload the procedures", "broken.lua:1")
    assert client.execute_command("t.version") == 2
    told = tokaido("reload", "--connect", server.address)
    assert told.returncode == 1
    assert "the program is as before" in told.stderr and "broken.lua:1" in told.stderr

    (procedures / "broken.lua").unlink()
    told = tokaido("reload", "--connect", server.address)
    assert (told.returncode, told.stdout) == (0, "1 procedures serve, as generation 3\n")
    assert client.execute_command("t.version") == 3
    assert server.stop() == 0


def test_sighup_does_not_end_a_server_without_procedures(own_server):
    server = own_server().start()
    assert server.redis().ping()
    server.process.send_signal(signal.SIGHUP)
    server.wait_for_log("the server has no procedures")
    assert server.is_alive()
