"""The shell in a terminal: its prompt, and Ctrl-C."""

import os
import pty
import re
import select
import signal
import termios
import time

import pytest
from support import binary, tokaido

SECONDS_MAX = 30
CTRL_C = "\x03"


class Terminal:
    """A program with a terminal of its own, as for a user who types."""

    def __init__(self, home, *arguments):
        environment = os.environ | {"TERM": "xterm", "HOME": str(home)}
        environment.pop("XDG_STATE_HOME", None)
        command = [binary(), *map(str, arguments)]
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.execve(command[0], command, environment)
        self.shown = ""
        self.unfinished = b""

    def expect(self, text):
        """Waits until the terminal shows this, after earlier matches; returns the text in between."""
        deadline = time.monotonic() + SECONDS_MAX
        while text not in self.shown:
            assert self.read(deadline), f"the program ended before {text!r}: {self.shown!r}"
        between, self.shown = self.shown.split(text, 1)
        return between

    def type(self, text):
        os.write(self.terminal, text.encode())

    def line(self, text):
        self.type(text + "\r")

    def run(self, text):
        """Types a line, and waits until Ctrl-C is a signal again and not a key for the line editor."""
        self.line(text)
        self.expect("\n")
        deadline = time.monotonic() + SECONDS_MAX
        while not termios.tcgetattr(self.terminal)[3] & termios.ISIG:
            assert time.monotonic() < deadline, f"{text!r} is not run"
            time.sleep(0.01)

    def status(self):
        """Waits for its end, and returns the exit status; if it does not end, it is killed."""
        try:
            self.expect_end()
        except AssertionError:
            os.kill(self.process, signal.SIGKILL)
            raise
        finally:
            status = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        return status

    def expect_end(self):
        deadline = time.monotonic() + SECONDS_MAX
        while self.read(deadline):
            pass

    def read(self, deadline):
        """Reads more output; returns whether there was any, which is false once the program has ended."""
        ready, _, _ = select.select([self.terminal], [], [], max(0, deadline - time.monotonic()))
        assert ready, f"nothing comes any more: {self.shown!r}"
        try:
            more = os.read(self.terminal, 4096)
        except OSError:  # the program has ended
            more = b""
        # Without the sequences that move the cursor and set colours; one of them may be cut in two.
        text = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", self.unfinished + more)
        whole, self.unfinished = text, b""
        if cut := re.search(rb"\x1b\[?[0-9;?]*$", text):
            whole, self.unfinished = text[: cut.start()], text[cut.start() :]
        self.shown += whole.decode(errors="replace")
        return bool(more)


@pytest.fixture(params=["a directory", "a server"])
def at(request, tmp_path):
    """The flag for the shell's data."""
    if request.param == "a directory":
        return "--dir", tmp_path / "shells"
    return "--connect", request.getfixturevalue("server").address


@pytest.fixture
def shell(at, tmp_path):
    terminal = Terminal(tmp_path, "shell", *at)
    terminal.expect("Ctrl-D leaves.")
    terminal.expect("main> ")
    return terminal


def test_the_prompt_shows_the_database_and_an_open_multi(shell):
    shell.line("MULTI")
    shell.expect("main (multi)> ")
    shell.line("SET k v")
    shell.expect("QUEUED")
    shell.expect("main (multi)> ")
    shell.line("EXEC")
    shell.expect("OK")
    shell.expect("main> ")
    shell.line("SELECT pages")
    shell.expect("pages> ")
    shell.line("MULTI")
    shell.expect("pages (multi)> ")
    shell.line("DISCARD")
    shell.expect("pages> ")
    shell.line("if true then")
    shell.expect("     > ")
    shell.line("end")
    shell.expect("pages> ")
    shell.line("ruby")
    shell.expect("pages (ruby)> ")
    shell.line("cups = [1,")
    shell.expect("            > ")
    shell.line("2]")
    shell.expect("\n[1, 2]")
    shell.line("cups.size + 40")
    shell.expect("\n42")
    shell.line("lua")
    shell.expect("pages> ")
    shell.line("exit")
    assert shell.status() == 0


def test_what_is_typed_while_a_line_runs_is_not_lost(shell):
    lines = ["print('wo' .. 'rd')", "SET typed ahead", "GET typed", "exit"]
    shell.type("\r".join(lines) + "\r")
    shell.expect("\nword")
    shell.expect("\nOK")
    shell.expect('\n"ahead"')
    assert shell.status() == 0


def test_ctrl_c_stops_the_lua_that_runs_and_not_the_shell(shell):
    for loop in ["while true do end", "while true do pcall(function() while true do end end) end"]:
        # Typed text is shown as well, so it must not contain the expected words.
        shell.line(f"kept = 7; print('is ' .. 'running'); {loop}")
        shell.expect("is running")
        shell.type(CTRL_C)
        shell.expect("(error) interrupted; a transaction that was open is rolled back")
        shell.expect("main> ")
        shell.line("kept * 6")
        shell.expect("42")
        shell.expect("main> ")
    shell.line("exit")
    assert shell.status() == 0


def test_an_interrupted_transaction_is_rolled_back(tmp_path):
    shell = Terminal(tmp_path, "shell", "--dir", tmp_path / "data")
    shell.expect("main> ")
    body = "tx.main:put('k', 'v') print('is ' .. 'running') while true do end"
    shell.line(f"tokaido.transact(function(tx) {body} end)")
    shell.expect("is running")
    shell.type(CTRL_C)
    shell.expect("(error) interrupted")
    shell.expect("main> ")
    shell.line("EXISTS k")
    shell.expect("(integer) 0")
    shell.line("tokaido.transact(function(tx) tx.main:put('later', 1) end)")
    shell.expect("main> ")
    shell.line("exit")
    assert shell.status() == 0
    assert tokaido("get", "--dir", tmp_path / "data", "main", "later").stdout == "1\n"


@pytest.mark.parametrize("long", ["GET k", "('long'):rep(5000000)"])
def test_ctrl_c_stops_a_long_reply_and_not_the_shell(shell, long):
    shell.line("SETRANGE k 5000000 end")
    shell.expect("(integer) 5000003")
    shell.line(long)
    # Unread output keeps the shell from writing more.
    shell.expect('"\\x00\\x00' if long == "GET k" else '"longlong')
    shell.type(CTRL_C)
    shell.expect("(error) interrupted; the rest is not shown")
    shell.expect("main> ")
    shell.line("1 + 1")
    shell.expect("2")
    shell.line("exit")
    assert shell.status() == 0


def test_the_shell_outlives_its_server(own_server, tmp_path):
    server = own_server().start()
    shell = Terminal(tmp_path, "shell", "--connect", server.address)
    shell.expect("main> ")
    shell.line("SELECT pages")
    shell.expect("pages> ")
    shell.line("SET k v")
    shell.expect("OK")
    shell.line("MULTI")
    shell.expect("pages (multi)> ")
    server.kill()
    shell.line("GET k")
    shell.expect("(error)")
    shell.expect("pages> ")
    shell.line("GET k")
    shell.expect("(error) cannot connect to")
    shell.expect("pages> ")
    shell.line("kept = 6")
    shell.expect("pages> ")
    server.start()
    shell.line("GET k")
    shell.expect('\n"v"')
    shell.expect("pages> ")
    shell.line("command('GET', 'k') .. kept")
    shell.expect('\n"v6"')
    shell.line("exit")
    assert shell.status() == 0


def test_the_shell_learns_of_a_reload(own_server, tmp_path):
    procedures = tmp_path / "procedures"
    procedures.mkdir()
    server = own_server(procedures=procedures).start()
    shell = Terminal(tmp_path, "shell", "--connect", server.address)
    shell.expect("main> ")
    text = "local t = require 'tokaido' return {%s = t.read(function(tx, n) return 'has run ' .. n end)}"
    (procedures / "fresh.lua").write_text(text % "first")
    assert tokaido("reload", "--connect", server.address).returncode == 0
    shell.line("fresh.first 1")
    shell.expect('"has run 1"')
    shell.expect("main> ")
    shell.type("fresh.f\t")
    shell.expect("fresh.first")
    shell.line(" 2")
    shell.expect('"has run 2"')
    shell.expect("main> ")
    # Also after a variable of that name, and not in the middle of a transaction.
    shell.line("fresh = {}")
    shell.expect("main> ")
    shell.line("MULTI")
    shell.expect("main (multi)> ")
    (procedures / "fresh.lua").write_text(text % "second")
    assert tokaido("reload", "--connect", server.address).returncode == 0
    shell.line("EXEC")
    shell.expect("(empty array)")
    shell.expect("main> ")
    shell.line("fresh.second 3")
    shell.expect('"has run 3"')
    shell.line("exit")
    assert shell.status() == 0


def test_ctrl_c_ends_the_waiting_for_a_server_that_is_silent(own_server, tmp_path):
    server = own_server().start()
    shell = Terminal(tmp_path, "shell", "--connect", server.address)
    shell.expect("main> ")
    server.process.send_signal(signal.SIGSTOP)
    # The second time, the shell is waiting for a new connection.
    for line in ["GET k", "GET k", "command('GET', 'k')"]:
        shell.run(line)
        shell.type(CTRL_C)
        shell.expect("(error) interrupted")
        shell.expect("main> ")
    server.process.send_signal(signal.SIGCONT)
    shell.line("GET k")
    shell.expect("(nil)")
    shell.line("exit")
    assert shell.status() == 0


def test_the_second_ctrl_c_at_an_empty_prompt_leaves(shell):
    shell.type("half a line")
    shell.type(CTRL_C)
    shell.expect("main> ")
    shell.line("if true then")
    shell.expect("> ")
    shell.type(CTRL_C)
    shell.expect("main> ")
    # Only from here on is there nothing to discard.
    shell.type(CTRL_C)
    shell.expect("Ctrl-C again, or Ctrl-D, leaves.")
    shell.expect("main> ")
    shell.line("1 + 1")
    shell.expect("2")
    shell.expect("main> ")
    shell.type(CTRL_C)
    shell.expect("Ctrl-C again, or Ctrl-D, leaves.")
    shell.expect("main> ")
    shell.type(CTRL_C)
    assert shell.status() == 0
