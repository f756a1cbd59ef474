"""Runs the same commands on two servers and compares the replies."""

import random

BATCH = 50

# Replies without a defined order: of plain elements, and of pairs.
UNORDERED = {"HKEYS", "HVALS", "SMEMBERS", "SINTER", "SUNION", "SDIFF"}
UNORDERED_PAIRS = {"HGETALL"}

KEYS = ["k1", "k2", "k3", "k4"]


class Pair:
    """Redis and Tokaido, side by side."""

    def __init__(self, redis, tokaido):
        self.redis = redis
        self.tokaido = tokaido

    def check_all(self, commands):
        """Runs the commands on both, and fails at the first one with different replies."""
        done = []
        for start in range(0, len(commands), BATCH):
            batch = commands[start : start + BATCH]
            for command, expected, came in zip(
                batch, self.redis.run_all(batch), self.tokaido.run_all(batch), strict=True
            ):
                done.append(command)
                if normal(command, expected) != normal(command, came):
                    raise AssertionError(difference(done, expected, came))

    def check(self, *command):
        self.check_all([command])

    def check_scans(self, name, keys, *options):
        """Compares the results of a full scan of each key."""
        for key in keys:
            expected = scan(self.redis, name, key, *options)
            came = scan(self.tokaido, name, key, *options)
            assert expected == came, f"{name} {key} {options}: Redis {expected}, Tokaido {came}"

    def check_state(self):
        """Compares the keys, their types and, roughly, their expiry."""
        for command in ("TYPE", "PERSIST", "EXISTS"):
            self.check_all([(command, key) for key in KEYS])
        self.check("DBSIZE")


def difference(done, expected, came):
    key = done[-1][1] if len(done[-1]) > 1 else None
    about = [command for command in done if key in command[1:]][-12:]
    lines = "\n".join(" ".join(map(str, command)) for command in about)
    return f"after\n{lines}\nRedis says   {expected}\nTokaido says {came}"


def normal(command, reply):
    """The reply without a meaningless order."""
    name = command[0].upper()
    kind, *body = reply
    if name in UNORDERED and body and kind in "*~":
        return kind, sorted(body[0])
    if name in UNORDERED_PAIRS and body and kind in "*%":
        return kind, sorted(body[0] if kind == "%" else pairs(body[0]))
    if name in {"XPENDING", "XINFO"}:
        return without_times(reply)
    return reply


def without_times(reply):
    """The reply without what depends on the clock: times since the epoch, and the idle times of XPENDING and
    XINFO; and without the number of nodes in Redis's tree."""
    kind, *body = reply
    if kind == ":" and len(body[0]) == 13:
        return kind, "a time"
    if not body or kind not in "*%":
        return reply
    parts = [part for pair in body[0] for part in pair] if kind == "%" else list(body[0])
    for i, part in enumerate(parts):
        after_name = i > 0 and parts[i - 1] in [("$", b"idle"), ("$", b"radix-tree-nodes")]
        is_idle = len(parts) == 4 and i == 2 and part[0] == ":" and kind == "*"
        parts[i] = "left out" if after_name or is_idle else without_times(part)
    return kind, parts


def pairs(flat):
    return list(zip(flat[::2], flat[1::2], strict=True))


def scan(wire, name, key, *options):
    """The result of a full scan: elements of sets, otherwise pairs."""
    found, cursor = set(), "0"
    while True:
        _, parts = wire.run(name, key, cursor, *options)
        (_, cursor), (_, elements) = parts
        found.update(elements if name == "SSCAN" else pairs(elements))
        if cursor == b"0":
            return found


def generated(seed, count, command):
    """Random commands of one family, with others about keys in between."""
    rng = random.Random(seed)
    return [command(rng) if rng.random() < 0.9 else about_a_key(rng) for _ in range(count)]


def about_a_key(rng):
    """A command that all types of values have."""
    key, other = rng.choice(KEYS), rng.choice(KEYS)
    return rng.choice([
        ("DEL", key), ("UNLINK", key, other), ("EXISTS", key, other), ("TYPE", key), ("TYPE", key),
        ("RENAME", key, other), ("RENAMENX", key, other), ("COPY", key, other), ("COPY", key, other, "REPLACE"),
        ("EXPIRE", key, "1000"), ("PERSIST", key), ("EXPIRE", key, "-1"), ("SET", key, "text"), ("DBSIZE",),
("GET", key), ("TOUCH", key),
    ])
