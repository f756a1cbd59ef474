"""Geospatial commands: the same replies, and the same scores, as from Redis."""

import random

import pytest

PLACES = {
    "Tokyo": (139.767052, 35.681167), "Kyoto": (135.758767, 34.985849), "Hakone": (139.024, 35.2323), "Odawara": (139.1553, 35.2564),
    "Nagoya": (136.8815, 35.1709), "Palermo": (13.361389, 38.115556), "Catania": (15.087269, 37.502669), "Quito": (-78.467834, -0.180653),
    "Suva": (178.4419, -18.1416), "Apia": (-171.7514, -13.8333), "north": (25.0, 85.05112878), "south": (-70.0, -85.05112878),
    "east": (180, 10), "west": (-180, 10), "null": (0, 0), "Hammerfest": (23.68, 70.66),
}
UNITS = ["m", "km", "ft", "mi", "KM"]


def add_all(key, places):
    return ("GEOADD", key, *(text for name, (x, y) in places.items() for text in (x, y, name)))


def fill(pair, rng, count):
    """Real places in one key, and clusters of others in another."""
    pair.check_all([add_all("world", PLACES), ("ZADD", "dest", 1, "old")])
    centres = [(rng.uniform(-180, 180), rng.uniform(-85, 85)) for _ in range(5)]
    near = {}
    for i in range(count):
        x, y = rng.choice(centres)
        near[f"m{i}"] = (max(-180, min(180, rng.gauss(x, 3))), max(-85, min(85, rng.gauss(y, 3))))
    pair.check(*add_all("near", near))
    pair.check("ZRANGE", "near", 0, -1, "WITHSCORES")
    return list(near.items()) + list(PLACES.items())


def limits(rng):
    return rng.choice([(), (), ("COUNT", rng.randint(1, 9)), ("COUNT", rng.randint(1, 9), "ANY")])


def search(rng, places, may_store):
    """The arguments of a search that all its forms share."""
    name, (x, y) = rng.choice(places)
    size = 10 ** rng.uniform(-1, 7.4)
    unit = rng.choice(UNITS)
    with_what = rng.sample(["WITHCOORD", "WITHDIST", "WITHHASH"], rng.randint(0, 3))
    order = rng.choice([(), (), ("ASC",), ("DESC",)])
    at = ("FROMMEMBER", name) if rng.random() < 0.5 else ("FROMLONLAT", x, y)
    shape = ("BYRADIUS", size, unit) if rng.random() < 0.5 else ("BYBOX", size, 10 ** rng.uniform(-1, 7.4), unit)
    key = rng.choice(["near", "near", "world", "missing"])
    form = rng.randrange(6)
    tail = [*order, *limits(rng)]
    stored = [("ZRANGE", "dest", 0, -1), ("TYPE", "dest")]
    if form < 3:
        return [("GEOSEARCH", key, *at, *shape, *tail, *with_what)]
    if form == 3:
        return [("GEOSEARCHSTORE", "dest", key, *shape, *at, *tail, *rng.choice([(), ("STOREDIST",)])), *stored]
    store = rng.choice([(), ("STORE", "dest"), ("STOREDIST", "dest")]) if may_store else ()
    name_or_point = (x, y) if form == 4 else (name,)
    command = "GEORADIUS" if form == 4 else "GEORADIUSBYMEMBER"
    return [(command + ("" if may_store else "_RO"), key, *name_or_point, size, unit, *tail, *(() if store else with_what), *store), *stored]


def numbers(reply):
    """The scores of a reply, flat or in pairs."""
    _, elements = reply
    pairs = [pair[1] for pair in elements] if elements and elements[0][0] == "*" else [elements]
    return [float(score) for pair in pairs for _, score in pair[1::2]]


@pytest.mark.parametrize("seed", range(4))
def test_generated_searches(pair, seed):
    rng = random.Random(seed)
    places = fill(pair, rng, rng.choice([6, 200]))
    for _ in range(250):
        pair.check_all(search(rng, places, rng.random() < 0.5))
        # Stored distances have the same bits; the number of digits shown changed in Redis 7.2.
        scores = [wire.run("ZRANGE", "dest", 0, -1, "WITHSCORES") for wire in (pair.redis, pair.tokaido)]
        assert numbers(scores[0]) == numbers(scores[1])


def test_points(pair):
    pair.check_all([
        add_all("geo", PLACES), add_all("geo", PLACES), ("GEOADD", "geo", "CH", 1, 2, "null", 3, 4, "new"), ("GEOADD", "geo", "XX", 5, 6, "newer"),
        ("GEOADD", "geo", "NX", 5, 6, "null"), ("GEOADD", "geo", "XX", "CH", 5, 6, "null"), ("GEOADD", "geo", "ch", "nx", 5, 6, "newest"),
        ("ZRANGE", "geo", 0, -1, "WITHSCORES"), ("GEOPOS", "geo", *PLACES, "missing"), ("GEOHASH", "geo", *PLACES, "missing"),
        ("GEOPOS", "geo"), ("GEOHASH", "geo"), ("GEOPOS", "missing", "a"), ("GEOHASH", "missing", "a", "b"), ("GEOPOS", "missing"),
    ])
    for unit in [*UNITS, "MI", "yd", ""]:
        pair.check_all([("GEODIST", "geo", a, b, unit) for a in PLACES for b in ("Tokyo", "null", "east", "missing")])
    pair.check_all([("GEODIST", "geo", a, b) for a in PLACES for b in PLACES])
    pair.check_all([("GEODIST", "missing", "a", "b"), ("GEODIST", "geo", "a"), ("GEODIST", "geo", "Tokyo", "null", "m", "x")])


def test_other_scores_are_points_too(pair):
    scores = [0, 1, 0.5, 2**52 - 1, 2**52, 2**53, 4e15, -1, 1e18]
    pair.check("ZADD", "zset", *(text for i, score in enumerate(scores) for text in (score, f"m{i}")))
    members = [f"m{i}" for i in range(len(scores))]
    pair.check_all([("GEOPOS", "zset", *members), ("GEOHASH", "zset", *members), ("GEODIST", "zset", "m0", "m3")])


def test_wrong_arguments(pair):
    pair.check_all([add_all("geo", PLACES), ("SET", "text", "v"), ("RPUSH", "list", "a")])
    for x, y in [(181, 0), (-180.1, 0), (0, 85.1), (0, -86), ("x", 0), (0, "y"), ("inf", 0), ("nan", 0), ("", "")]:
        pair.check_all([
            ("GEOADD", "geo", x, y, "m"), ("GEORADIUS", "geo", x, y, 1, "m"), ("GEOSEARCH", "geo", "FROMLONLAT", x, y, "BYRADIUS", 1, "m"),
        ])
    for words in ["", "1", "1 2", "1 2 m 3", "NX 1 2", "NX XX 1 2 m", "CH CH 1 2 m", "GT 1 2 m", "NX NX NX"]:
        pair.check("GEOADD", "geo", *words.split())
    for key in ("geo", "missing", "text", "list"):
        for words in [
            "Tokyo 1 m", "Tokyo -1 m", "Tokyo x m", "Tokyo 1 yd", "Tokyo 1", "nobody 1 m", "Tokyo 1 m COUNT", "Tokyo 1 m COUNT 0",
            "Tokyo 1 m COUNT -1", "Tokyo 1 m COUNT x", "Tokyo 1 m ANY", "Tokyo 1 m COUNT 1 ANY", "Tokyo 1 m WHAT", "Tokyo 1 m STORE",
            "Tokyo 1 m STORE dest WITHDIST", "Tokyo 1 m WITHCOORD STOREDIST dest", "Tokyo 1 m STORE dest STOREDIST dest2", "Tokyo 1 m ASC DESC",
        ]:
            pair.check_all([("GEORADIUSBYMEMBER" + suffix, key, *words.split()) for suffix in ("", "_RO")])
        for words in [
            "FROMMEMBER Tokyo BYRADIUS 1 m", "FROMMEMBER Tokyo BYRADIUS 1", "FROMMEMBER Tokyo", "BYRADIUS 1 m ASC COUNT 1", "FROMMEMBER Tokyo BYBOX 1 1 m",
            "FROMMEMBER Tokyo BYBOX -1 1 m", "FROMMEMBER Tokyo BYBOX 1 x m", "FROMMEMBER Tokyo BYBOX x 1 m", "FROMMEMBER Tokyo BYBOX 1 1 yd",
            "FROMMEMBER Tokyo FROMLONLAT 1 1 BYRADIUS 1 m", "FROMLONLAT 1 1 FROMMEMBER Tokyo BYRADIUS 1 m", "FROMMEMBER Tokyo FROMMEMBER Kyoto BYRADIUS 1 m",
            "FROMLONLAT 1 1 FROMLONLAT 2 2 BYRADIUS 1 m", "FROMLONLAT 1 1 BYRADIUS 1 m BYBOX 1 1 m", "FROMLONLAT 1 1 BYBOX 1 1 m BYRADIUS 1 m",
            "FROMLONLAT 1 1 BYRADIUS 1 m BYRADIUS 9000 km COUNT 1", "FROMLONLAT 1 1 BYRADIUS 1 m STOREDIST", "FROMLONLAT 1 1 BYRADIUS 1 m STORE dest",
            "FROMLONLAT 1 1 BYRADIUS 1 m WITHDIST", "FROMLONLAT 1 1 BYRADIUS 1 m ANY", "FROMLONLAT 1 BYRADIUS 1 m ASC", "FROMLONLAT x 1 BYRADIUS 1 m",
        ]:
            pair.check_all([("GEOSEARCH", key, *words.split()), ("geosearchstore", "dest", key, *words.split()), ("EXISTS", "dest")])
    pair.check_all([(name, "text", "a", "b") for name in ("GEOPOS", "GEOHASH", "GEODIST")] + [("GEOADD", "text", 1, 2, "m")])


def test_the_keys_of_what_stores(pair):
    for words in [
        "GEORADIUS k 1 2 3 m STORE d", "GEORADIUS k 1 2 3 m COUNT 1 STOREDIST d", "GEORADIUSBYMEMBER k m 3 m STORE d",
        "GEOSEARCHSTORE d k FROMMEMBER m BYRADIUS 1 m", "SORT k", "SORT k STORE d", "SORT k BY store GET store LIMIT 1 2 STORE d", "GEORADIUS k 1 2 3 m",
    ]:
        pair.check("COMMAND", "GETKEYS", *words.split())
