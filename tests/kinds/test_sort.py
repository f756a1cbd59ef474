"""SORT: the same replies as from Redis."""

import random

import pytest

NUMBERS = ["3", "1", "-2.5", "10", "1e3", "inf", "0", "-0", "1", "007", "+4"]
TEXTS = ["b", "a", "", "10", "9", "B", "abc", "a long text of many bytes"]


def fill(pair, elements):
    """The same elements in each type of collection, and values besides to sort by and to get."""
    different = list(dict.fromkeys(elements))
    pair.check_all([("RPUSH", "list", *elements), ("SADD", "set", *different)])
    pair.check_all([("ZADD", "zset", *(part for i, e in enumerate(different) for part in (i * 7 % 5, e)))])
    for i, element in enumerate(different):
        if i % 4:
            pair.check_all([("SET", f"w_{element}", i * 37 % 11), ("HSET", f"h_{element}", "f", i * 31 % 13, "text", f"t{i}")])
    pair.check_all([("SET", "h_x", "no hash"), ("HSET", "w_x", "f", "no string")])


def options(rng, readonly, total):
    """Options that determine the order: equal texts have no defined order."""
    some = [("ASC",), ("DESC",), ("desc",), ("LIMIT", rng.randint(-2, 4), rng.randint(-2, 6)), ("GET", "#"), ("GET", "w_*"),
            ("GET", "h_*->f"), ("GET", "h_*->text"), ("GET", "nothing"), ("GET", "h_*->"), ("GET", "x*->none")]
    some += total
    if not readonly:
        some.append(("STORE", "result"))
    return [word for option in rng.sample(some, rng.randint(0, 4)) for word in option]


@pytest.mark.parametrize("name", ["SORT", "SORT_RO"])
@pytest.mark.parametrize("seed", range(3))
def test_generated_sorts(pair, seed, name):
    rng = random.Random(seed)
    for elements in (NUMBERS, TEXTS, [str(i * 7919 % 100) for i in range(60)]):
        pair.check("FLUSHALL")
        fill(pair, elements)
        is_text = elements is TEXTS
        total = [("BY", "w_*"), ("BY", "h_*->f")] if not is_text else []
        for _ in range(150):
            key = rng.choice(["list", "set", "zset", "missing"])
            words = options(rng, name == "SORT_RO", total)
            alpha = ["ALPHA"] if is_text or "BY" not in words and rng.random() < 0.3 else []
            pair.check_all([(name, key, *words, *alpha), ("LRANGE", "result", 0, -1), ("TYPE", "result"), ("DEL", "result")])


def test_what_is_not_sorted(pair):
    fill(pair, NUMBERS)
    for key in ("list", "zset"):
        for more in ((), ("DESC",), ("LIMIT", 2, 3), ("DESC", "LIMIT", 1, 2), ("GET", "w_*"), ("LIMIT", 0, 0), ("LIMIT", 50, 5)):
            pair.check_all([("SORT", key, "BY", "nosort", *more), ("SORT_RO", key, "BY", "", *more)])
    for key in ("set", "list", "zset"):
        pair.check_all([("SORT", key, "BY", "nosort", "STORE", "r"), ("LRANGE", "r", 0, -1), ("SORT", key, "STORE", key), ("TYPE", key)])


def test_wrong_arguments(pair):
    pair.check_all([("RPUSH", "list", "b", "a"), ("SET", "text", "v"), ("HSET", "hash", "f", "v"), ("RPUSH", "empty", "", "1", "-1")])
    for name in ("SORT", "SORT_RO"):
        pair.check_all([(name,), (name, "list"), (name, "text"), (name, "hash"), (name, "missing"), (name, "list", "ALPHA"), (name, "empty")])
        for words in ("LIMIT", "LIMIT 1", "LIMIT x 1", "LIMIT 1 x", "BY", "GET", "STORE", "STORE text", "WHAT", "ALPHA ASC WHAT", "GET #"):
            pair.check_all([(name, key, *words.split()) for key in ("missing", "text", "list")])
            pair.check_all([("SET", "text", "v"), ("DEL", "result")])
    pair.check_all([("SORT", "missing", "STORE", "text"), ("EXISTS", "text"), ("SORT", "list", "STORE", "list", "ALPHA"), ("LRANGE", "list", 0, -1)])
