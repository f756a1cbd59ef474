"""HTTP with urllib and curl: records, listings, calls, routes, and the operators' pages."""

import json
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest


def put(server, path, body, **headers):
    named = {name.replace("_", "-"): str(value) for name, value in headers.items()}
    return server.http("PUT", f"/v1/db/{path}", body, named)


def call(server, procedure, *arguments):
    status, _, body = server.http("POST", f"/v1/call/{procedure}", json.dumps(arguments).encode())
    return status, json.loads(body)


def lines(body):
    return [json.loads(line) for line in body.splitlines()]


def test_a_record_is_put_got_and_deleted(server):
    value = bytes(range(256))
    assert put(server, "main/k", value)[0] == 201
    status, headers, body = server.http("GET", "/v1/db/main/k")
    assert (status, body, headers["content-type"]) == (200, value, "application/octet-stream")
    assert put(server, "main/k", b"")[0] == 204
    assert server.http("GET", "/v1/db/main/k")[2] == b""
    assert server.http("DELETE", "/v1/db/main/k")[0] == 204
    assert server.http("DELETE", "/v1/db/main/k")[0] == 404
    assert server.http("GET", "/v1/db/main/k")[0] == 404


def test_what_one_protocol_writes_the_other_reads(server):
    client = server.redis()
    put(server, "main/from-http", "日本橋".encode())
    client.set("from-redis", "品川", ex=100)
    assert client.get("from-http") == "日本橋".encode()
    _, headers, body = server.http("GET", "/v1/db/main/from-redis")
    assert body == "品川".encode()
    left_ms = int(headers["tokaido-expires-at-ms"]) - time.time() * 1000
    assert 90_000 < left_ms <= 100_000


def test_a_key_may_be_any_bytes(server):
    put(server, "main/a%00%FF%2Fb/c%20d", b"v")
    assert server.redis().get(b"a\x00\xff/b/c d") == b"v"
    assert put(server, "main/" + "k" * 4096, b"v")[0] == 201
    assert put(server, "main/" + "k" * 4097, b"v")[0] == 400
    assert put(server, "main/%zz", b"v")[0] == 400


def test_flags_and_expiry_are_headers(server):
    put(server, "main/k", b"v", tokaido_flags=53, tokaido_ttl_ms=100_000)
    headers = server.http("GET", "/v1/db/main/k")[1]
    assert headers["tokaido-flags"] == "53"
    assert 98 <= server.redis().ttl("k") <= 100
    put(server, "main/gone", b"v", tokaido_ttl_ms=1)
    time.sleep(0.01)
    assert server.http("GET", "/v1/db/main/gone")[0] == 404
    assert put(server, "main/k", b"v", tokaido_ttl_ms="soon")[0] == 400


def test_preconditions_hold_or_nothing_happens(server):
    assert put(server, "main/k", b"1", if_none_match="*")[0] == 201
    assert put(server, "main/k", b"2", if_none_match="*")[0] == 412
    etag = server.http("GET", "/v1/db/main/k")[1]["etag"]
    assert put(server, "main/k", b"3", if_match=etag)[0] == 204
    assert put(server, "main/k", b"4", if_match=etag)[0] == 412
    assert server.http("GET", "/v1/db/main/k")[2] == b"3"


def test_of_many_who_race_to_replace_a_record_one_wins_each_time(server):
    put(server, "main/n", b"0")

    def add_one(_):
        while True:
            _, headers, body = server.http("GET", "/v1/db/main/n")
            new = str(int(body) + 1).encode()
            if put(server, "main/n", new, if_match=headers["etag"])[0] == 204:
                return

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add_one, range(80)))
    assert server.http("GET", "/v1/db/main/n")[2] == b"80"


def test_a_listing_comes_in_pages(server):
    keys = [f"k{i:03}" for i in range(25)]
    server.redis().mset({key: f"value of {key}" for key in keys} | {"other": "x"})
    seen, after, pages = [], "", 0
    while after is not None:
        path = f"/v1/db/main?prefix=k&limit=10&after={after}" if after else "/v1/db/main?prefix=k&limit=10"
        page = lines(server.http("GET", path)[2])
        after = page.pop()["next"] if "next" in page[-1] else None
        seen += page
        pages += 1
    assert pages == 3
    assert seen == [{"key": key, "value": f"value of {key}"} for key in keys]


def test_a_listing_has_bounds_and_a_direction(server):
    server.redis().mset({key: key.upper() for key in "abcdef"})

    def keys(query):
        return [line["key"] for line in lines(server.http("GET", f"/v1/db/main?values=false&{query}")[2])]

    assert keys("from=b&to=e") == ["b", "c", "d", "e"]
    assert keys("from=b&before=e") == ["b", "c", "d"]
    assert keys("reverse=true&from=b&to=e") == ["e", "d", "c", "b"]
    assert keys("after=d") == ["e", "f"]
    assert server.http("GET", "/v1/db/main?limit=none")[0] == 400
    assert server.http("GET", "/v1/db/no-such-database")[0] == 404


def test_bytes_that_are_no_text_are_listed_in_base64(server):
    server.redis().set(b"\xff", b"\xfe")
    assert lines(server.http("GET", "/v1/db/main")[2]) == [{"key_base64": "/w==", "value_base64": "/g=="}]


def test_the_databases_are_listed(server):
    put(server, "people/1", b"abc")
    databases = json.loads(server.http("GET", "/v1/db")[2])["databases"]
    people = next(database for database in databases if database["name"] == "people")
    assert (people["records"], people["key_bytes"], people["value_bytes"]) == (1, 1, 3)


def test_a_procedure_is_called_with_json(server):
    assert call(server, "hits.count", "/index") == (200, {"result": 1})
    assert call(server, "hits.count", "/index") == (200, {"result": 2})
    values = ["text 日本", 1, -1.5, True, False, [1, [2, 3]], {"a": {"b": [4]}}]
    assert call(server, "values.echo", *values) == (200, {"result": values})
    assert call(server, "values.none") == (200, {"result": None})


@pytest.mark.parametrize("number", [2**53 - 1, 2**53 + 1, 2**63 - 1, -(2**63)])
def test_integers_of_64_bits_stay_exact(server, number):
    assert call(server, "values.echo", number) == (200, {"result": [number]})


def test_a_failed_call_says_why_and_leaves_nothing(server):
    status, answer = call(server, "hits.count_and_fail", "/x")
    assert status == 422
    assert "refused on purpose" in answer["error"]["message"]
    assert "hits.lua:" in answer["error"]["message"]
    assert call(server, "hits.get", "/x") == (200, {"result": None})
    assert call(server, "no.such")[0] == 404
    assert server.http("POST", "/v1/call/hits.count", b"{broken")[0] == 400


def test_a_runaway_is_answered(server):
    status, answer = call(server, "runaway.spin")
    assert status == 503
    assert "time limit" in answer["error"]["message"]


def test_a_route_answers(server):
    assert server.http("GET", "/hits/none")[2] == b"0"
    server.redis().execute_command("hits.count", "index")
    assert server.http("GET", "/hits/index")[::2] == (200, b"1")
    status, headers, _ = server.http("POST", "/hits/index", b"")
    assert status == 405 and "GET" in headers["allow"]
    assert server.http("GET", "/nothing/here")[0] == 404


def test_operators_see_health_and_metrics(server):
    assert server.http("GET", "/healthz")[0] == 200
    status, _, body = server.http("GET", "/metrics")
    assert status == 200
    assert b"# TYPE tokaido_" in body


def test_a_body_over_the_limit_is_refused(own_server):
    server = own_server(options=["--http-body-bytes-max", "1000"]).start()
    assert put(server, "main/k", b"x" * 1000)[0] == 201
    assert put(server, "main/k", b"x" * 1001)[0] == 413
    assert server.is_alive()


def test_curl_keeps_its_connection_and_sends_chunks(server, tmp_path):
    file = tmp_path / "value"
    file.write_bytes(b"0123456789" * 50_000)
    url = f"http://{server.address}/v1/db/main"
    upload = ["curl", "--silent", "--fail", "--header", "Transfer-Encoding: chunked", "--upload-file", file]
    subprocess.run([*upload, f"{url}/k"], check=True, timeout=60)
    fetch = ["curl", "--silent", "--fail", "--write-out", "%{num_connects}\n", "--output", "/dev/null"]
    done = subprocess.run(
        [*fetch, f"{url}/k", "--next", *fetch[1:], f"{url}/k"],
        check=True, timeout=60, capture_output=True, text=True,
    )
    assert done.stdout.split() == ["1", "0"], "the second request needs no connection of its own"
    assert server.redis().get("k") == file.read_bytes()
