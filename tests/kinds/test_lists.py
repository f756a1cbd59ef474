"""Lists: the same replies as from Redis."""

import pytest

from .differential import KEYS, generated

ITEMS = [str(i) for i in range(6)] + ["a", "b", "", "an item of more bytes"]
NUMBERS = [*range(-12, 13), 100, -100, "x", 2**63 - 1, -(2**63), 2**63]
ENDS = ["LEFT", "RIGHT", "left"]


def items(rng, most=5):
    return [rng.choice(ITEMS) for _ in range(rng.randint(1, most))]


def lpos(rng, key):
    options = [("RANK", rng.choice([1, 2, -1, -2, 3])), ("COUNT", rng.randint(0, 3)), ("MAXLEN", rng.randint(0, 9))]
    chosen = [text for option in rng.sample(options, rng.randint(0, 3)) for text in option]
    return ("LPOS", key, rng.choice(ITEMS), *chosen)


def lmpop(rng):
    keys = [rng.choice([*KEYS, "missing"]) for _ in range(rng.randint(1, 3))]
    return ("LMPOP", len(keys), *keys, rng.choice(ENDS), *rng.choice([(), ("COUNT", rng.randint(1, 4))]))


def command(rng):
    key, other, item = rng.choice(KEYS), rng.choice(KEYS), rng.choice(ITEMS)
    start, stop = rng.choice(NUMBERS), rng.choice(NUMBERS)
    return rng.choice([
        ("LPUSH", key, *items(rng)), ("RPUSH", key, *items(rng)), ("RPUSH", key, *items(rng, 9)), ("LPUSH", key, *items(rng, 9)),
        ("LPUSHX", key, item), ("RPUSHX", key, *items(rng)), ("LPOP", key), ("RPOP", key), ("LPOP", key, rng.randint(0, 4)),
        ("RPOP", key, rng.randint(0, 4)), ("LLEN", key), ("LRANGE", key, start, stop), ("LRANGE", key, 0, -1),
        ("LRANGE", key, 0, -1), ("LINDEX", key, start), ("LSET", key, rng.randint(-9, 9), item),
        ("LINSERT", key, rng.choice(["BEFORE", "after"]), item, rng.choice(ITEMS)),
        ("LINSERT", key, "AFTER", item, rng.choice(ITEMS)), ("LREM", key, rng.randint(-2, 2), item),
        ("LTRIM", key, rng.randint(0, 2), rng.choice([-1, -2, 12])), lpos(rng, key), lpos(rng, key),
        ("LMOVE", key, other, rng.choice(ENDS), rng.choice(ENDS)), ("LMOVE", key, key, rng.choice(ENDS), rng.choice(ENDS)),
        ("RPOPLPUSH", key, other), lmpop(rng),
    ])


@pytest.mark.parametrize("seed", range(3))
def test_generated_commands(pair, seed):
    pair.check_all(generated(seed, 2000, command))
    pair.check_state()


@pytest.mark.parametrize("name", [
    "LPUSH", "RPUSH", "LPUSHX", "RPUSHX", "LPOP", "RPOP", "LLEN", "LRANGE", "LINDEX", "LSET", "LINSERT", "LREM", "LTRIM",
    "LPOS", "LMOVE", "RPOPLPUSH", "LMPOP",
])
def test_wrong_arguments(pair, name):
    for first in ("string", "list", "missing", "0", "1", "2", "x"):
        pair.check_all([("SET", "string", "v"), ("DEL", "list", "missing", "0", "1"), ("RPUSH", "list", "a", "b", "a")])
        pair.check_all([(name, first, *rest) for rest in tails()])
    pair.check_all([(name,), ("LRANGE", "list", "0", "-1"), ("EXISTS", "missing", "0", "1")])


def tails():
    texts = ["0", "1", "-1", "a", "string", "list", "missing", "LEFT", "BEFORE", "RANK", "COUNT", str(2**63)]
    yield ()
    for first in texts:
        yield (first,)
        for second in texts:
            yield first, second
    for first in ("a", "list", "LEFT", "0"):
        for second in texts:
            yield first, second, "RIGHT"
            yield first, second, "0"
        for number in ("0", "-1", "x", "2"):
            for option in ("RANK", "COUNT", "MAXLEN"):
                yield first, option, number
            yield first, "LEFT", "COUNT", number
        yield first, "LEFT", "COUNT", "1", "COUNT", "1"
        yield first, "COUNT", "1", "RANK", "-1", "MAXLEN"


def test_long_lists(pair):
    """Inserts and removes items within a long list, near either end."""
    pair.check_all([("RPUSH", "k", *range(500)), ("LPUSH", "k", *range(500, 1000))])
    for i in (1, 5, 250, 501, 990, 999):
        pair.check_all([
            ("LINDEX", "k", i), ("LINDEX", "k", -i), ("LINSERT", "k", "BEFORE", i, f"before {i}"),
            ("LINSERT", "k", "AFTER", i, f"after {i}"), ("LREM", "k", 1, i), ("LSET", "k", i, f"set {i}"),
            ("LPOS", "k", f"set {i}"), ("LLEN", "k"),
        ])
    pair.check_all([("RPUSH", "k", *[i % 7 for i in range(300)]), ("LREM", "k", 0, 3), ("LRANGE", "k", 0, -1)])
    pair.check_all([("LREM", "k", -5, 4), ("LREM", "k", 5, 999), ("LTRIM", "k", 100, -100), ("LRANGE", "k", 0, -1)])
    pair.check_all([("LPOP", "k", 50), ("RPOP", "k", 50), ("LRANGE", "k", 10, 20), ("LRANGE", "k", -20, -10)])
    pair.check_all([("LTRIM", "k", 5, 4), ("EXISTS", "k"), ("RPUSH", "k", "again")])


def test_an_item_moves_within_its_list(pair):
    for size in (1, 2, 8, 9):
        for ends in [(a, b) for a in ("LEFT", "RIGHT") for b in ("LEFT", "RIGHT")]:
            pair.check_all([("DEL", "k"), ("RPUSH", "k", *range(size)), ("EXPIRE", "k", "1000"), ("LMOVE", "k", "k", *ends)])
            pair.check_all([("LRANGE", "k", 0, -1), ("TTL", "k"), ("RPOPLPUSH", "k", "k"), ("LRANGE", "k", 0, -1)])


def test_keys_are_found_behind_their_number(wire):
    assert wire.run("COMMAND", "GETKEYS", "LMPOP", "2", "a", "b", "LEFT") == ("*", [("$", b"a"), ("$", b"b")])


def test_a_large_list_survives_a_restart(own_server):
    with own_server() as server:
        server.redis().rpush("k", *range(1000))
        assert server.redis().lpop("k", 10) == [str(i).encode() for i in range(10)]
        server.kill()
        server.start()
        assert server.redis().llen("k") == 990
        assert server.redis().lrange("k", 0, 1) == [b"10", b"11"]
