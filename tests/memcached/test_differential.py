"""The same commands to memcached and to the server: the replies are equal.

Accepted differences, and so not generated; docs/memcached.md has the reasons:
- the flags `l`, `u` and `x` of meta commands, and opaque texts that are too long;
- keys that claim to be base64 and nearly are, and the form in which mg returns a key, which memcached
  takes from the command that created the record;
- times in seconds may differ by one, since memcached's clock ticks in seconds; and the time left of an
  expired record, which memcached returns as a large number;
- the number of a cas, but not which replies share one;
- the flag `T` of ma, which memcached applies to the record that a growing counter has left.

Each command is answered before the next is sent, and memcached runs without its background threads that
move records. It treats a counter that a reply or a thread still refers to as one that has grown, so that
its padding and marks depend on how far those have got.
"""

import base64
import random
import re

import pytest

from .conftest import Raw
from .peer import Memcached

COMMANDS = 4000

KEYS = ["a", "b", "c", "d", "counter", "k" * 250]
BINARY_KEYS = [base64.b64encode(key).decode() for key in (b"\x00", b"two words", b"\xff\xfe")]
NUMBERS = ["0", "1", "2", "99", "18446744073709551615", "9999", "-1", "x", "", "18446744073709551616"]
EXPTIMES = ["0", "0", "0", "100", "1000", "2592000", "2592001", "4000000000", "-1", "x"]
VALUES = ["", "0", "9", "10", "99 ", "18446744073709551615", "hello", "x" * 300, "12 abc", " 7", "-3"]
MODES = {"ms": "SEAPRX", "ma": "I+D-X"}


class Generator:
    """Commands, as functions of the cas that a server has reported for each key."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, options):
        return self.random.choice(options)

    def chance(self, probability):
        return self.random.random() < probability

    def noreply(self):
        return " noreply" if self.chance(0.15) else ""

    def command(self, number):
        kinds = [self.store] * 4 + [self.get] * 4 + [self.change] * 4 + [self.meta] * 9 + [self.odd]
        return self.pick(kinds)(number)

    def store(self, _):
        name = self.pick(["set", "set", "set", "add", "replace", "append", "prepend", "cas", "cas"])
        key, value = self.pick(KEYS), self.pick(VALUES)
        flags = self.pick(["0", "0", "1", "4294967295", "4294967296", "x"])
        is_right = self.chance(0.95) or not value
        length = len(value) if is_right else len(value) + self.pick([-1, 1, 2])
        line = f"{name} {key} {flags} {self.pick(EXPTIMES)} {length}"
        noreply = self.noreply()
        if name != "cas":
            return lambda cas: f"{line}{noreply}\r\n{value}\r\n"
        other = self.pick([None, None, None, "0", "1"])
        return lambda cas: f"{line} {other or cas.get(key, 1)}{noreply}\r\n{value}\r\n"

    def get(self, _):
        name = self.pick(["get", "get", "gets", "gets", "gat", "gats"])
        keys = " ".join(self.pick(KEYS) for _ in range(self.random.randint(1, 3)))
        exptime = f" {self.pick(EXPTIMES)}" if name.startswith("gat") else ""
        return lambda cas: f"{name}{exptime} {keys}\r\n"

    def change(self, _):
        key, noreply = self.pick(KEYS), self.noreply()
        line = self.pick([
            f"incr {key} {self.pick(NUMBERS)}",
            f"decr {key} {self.pick(NUMBERS)}",
            f"touch {key} {self.pick(EXPTIMES)}",
            f"delete {key}{self.pick(['', '', ' 0', ' 1'])}",
            f"set counter 0 0 2{noreply}\r\n{self.random.randint(10, 99)}",
        ])
        noreply = "" if line.startswith("set") else noreply
        return lambda cas: f"{line}{noreply}\r\n"

    def meta(self, number):
        name = self.pick(["mg", "mg", "mg", "ms", "ms", "md", "ma"])
        is_binary = self.chance(0.2)
        key = self.pick(BINARY_KEYS if is_binary else KEYS)
        flags = ["b"] if is_binary else []
        possible = {
            "mg": ["v", "v", "f", "t", "s", "c", "h", "q", "T", "N", "R"],
            "ms": ["c", "q", "T", "F", "I", "C", "M"],
            "md": ["q", "I", "I", "T", "C"],
            "ma": ["v", "t", "c", "q", "N", "J", "D", "M", "C"],
        }[name]
        flags += self.random.sample(possible, self.random.randint(0, min(5, len(possible))))
        if self.chance(0.05):
            flags.append(self.pick(["!", "v", "q", "Tx", "Cx", "Jx", "Fx", "M", "MXX"]))
        if self.chance(0.3) and not (is_binary and name == "mg"):
            flags.append("k")
        if self.chance(0.5):
            flags.append(f"O{number}")
        self.random.shuffle(flags)
        values = {
            "T": lambda: self.pick(["0", "100", "1000"] + ([] if "t" in flags else ["-1"])),
            "N": lambda: self.pick(["0", "100", "1000"]),
            "R": lambda: self.pick(["0", "50", "150", "2000"]),
            "F": lambda: self.pick(["0", "5", "4294967295"]),
            "J": lambda: self.pick(["0", "13", "18446744073709551615"]),
            "D": lambda: self.pick(["0", "1", "30", "18446744073709551615"]),
            "M": lambda: self.pick(MODES.get(name, "S")),
        }
        flags = [flag + values[flag]() if flag in values else flag for flag in flags]
        value = self.pick(VALUES)
        length = f" {len(value)}" if name == "ms" else ""
        data = f"{value}\r\n" if name == "ms" else ""
        other = self.pick([None, None, None, "0", "1"])

        def build(cas):
            known = other or cas.get(key, 1)
            words = [f"C{known}" if flag == "C" else flag for flag in flags]
            return f"{name} {' '.join([key + length, *words])}\r\n{data}"

        return build

    def odd(self, _):
        line = self.pick([
            "mn", "verbosity 0", "verbosity x", "verbosity", "get", "gets", "incr a", "set a", "mg", "ms a",
            "ms a x", "ms a -1", "nonsense", "x", "", "GET a", "gat", "gat 0", "touch a", "me none", "me",
            "mx a", "flush_all x", "flush_all 0 0 0", "delete", f"get {'k' * 251}", f"set {'k' * 251} 0 0 1",
            f"mg {'k' * 251}", f"ms {'k' * 251} 1", "mg a " + "v " * 20, "decr counter 1 2 3", "cas a 0 0 1 x",
            "set a 0 0 -1", "set a 0 0 2147483647", "flush_all", "flush_all noreply", "flush_all -1",
        ])
        return lambda cas: f"{line}\r\n"


class Subject:
    """A server under test, and what it has reported for each key."""

    def __init__(self, port):
        self.raw = Raw(("127.0.0.1", port))
        self.cas = {}
        self.numbers = {}
        # So that no record has the cas 1.
        self.raw.ask(b"set sentinel 0 0 0\r\n\r\ndelete sentinel\r\n", b"DELETED\r\n")

    def run(self, command, number):
        request = command(self.cas)
        end = f"O{number}\r\n"
        # If a value's length is wrong, the empty line becomes part of the value.
        text = f"{request}\r\nmg sentinel {end}"
        reply = self.raw.ask(text.encode("latin-1"), f"EN {end}".encode())
        return request, self.normal(reply.decode("latin-1"))

    def normal(self, reply):
        """The reply without what may differ; also records each cas."""
        lines = []
        for line in reply.split("\r\n"):
            words = line.split(" ")
            if words[0] == "VALUE" and len(words) == 5:
                self.cas[words[1]] = words[4]
                words[4] = self.name(words[4])
            elif words[0] in ("HD", "VA", "EX", "NF", "NS"):
                words = [self.flag(word) for word in words]
            lines.append(" ".join(words))
        return lines

    def flag(self, word):
        if re.fullmatch(r"c\d+", word):
            return "c" + (self.name(word[1:]) if word != "c0" else "0")
        # memcached's clock may tick between two requests.
        return "t(time)" if re.fullmatch(r"t[1-9]\d+", word) else word

    def name(self, cas):
        return self.numbers.setdefault(cas, f"cas{len(self.numbers)}")


@pytest.mark.parametrize("seed", range(3))
def test_replies_are_those_of_memcached(memcached, seed):
    generator = Generator(seed)
    with Memcached("-o", "no_lru_crawler,no_lru_maintainer,no_slab_reassign") as peer:
        ours, theirs = Subject(memcached.memcached_port), Subject(peer.port)
        for number in range(COMMANDS):
            command = generator.command(number)
            request, expected = theirs.run(command, number)
            _, got = ours.run(command, number)
            assert got == expected, f"seed {seed}, command {number}, {request!r}"
