"""Access rules hold for every protocol: here the default user may only use the keys `mine…`."""

import base64
import socket
import struct
import time
import urllib.parse

import pytest
import redis
from support import Server, free_port, wait_until

from .protocols import PROCEDURES, PROTOCOLS, Refused
from .test_pairs import CONFIGURATION, can_connect

USERS = """
user admin on >root ~* &* +@all
user app on >sesame ~mine* +@all -@dangerous -@procedure
user reader on >sesame %R~mine* +get +scan
user metrics on >sesame -@all +info
user default on nopass ~mine* +@read +@write +@connection +fcall -@dangerous
"""

# Possible failures: each protocol has its own.
FAILURES = (Refused, AssertionError, OSError, ValueError, struct.error, redis.RedisError, KeyError, IndexError)


@pytest.fixture(scope="module")
def ports(tmp_path_factory):
    directory = tmp_path_factory.mktemp("users")
    ports = {name: free_port() for name in ("all", "memcached", "kyoto", "tyrant")}
    configuration = directory / "tokaido.toml"
    configuration.write_text(CONFIGURATION.format(**ports))
    users, procedures = directory / "users.acl", directory / "procedures"
    users.write_text(USERS)
    procedures.mkdir()
    (procedures / "records.lua").write_text(PROCEDURES)
    server = Server(directory / "data", directory / "log", procedures=procedures, port=ports["all"])
    server.listen = []
    server.options = ["--config", str(configuration), "--acl-file", str(users), "--sync", "os"]
    with server:
        for port in ports.values():
            wait_until(lambda port=port: can_connect(port), "the port")
        yield ports
        assert server.is_alive(), server.log()


@pytest.fixture
def admin(ports):
    client = redis.Redis(port=ports["all"], username="admin", password="root")
    client.flushall()
    yield client
    client.execute_command("ACL", "LOAD")
    client.close()


@pytest.fixture(params=sorted(set(PROTOCOLS) - {"lua"}))
def connect(request, ports):
    """Makes clients of a protocol; one whose connection was closed cannot be used again."""
    made = []

    def make():
        made.append(PROTOCOLS[request.param](ports))
        return made[-1]

    yield make
    for client in made:
        client.close()


def is_refused(work):
    """Whether an operation is refused; not found also counts, since nothing was read."""
    try:
        return work() in (None, False)
    except FAILURES:
        return True


def test_a_user_reaches_the_keys_that_he_may_use(admin, connect):
    client = connect()
    client.set(b"mine", b"1")
    assert client.get(b"mine") == b"1" and admin.get("mine") == b"1"
    assert client.delete(b"mine") and admin.get("mine") is None


def test_a_user_reaches_no_other_key(admin, connect):
    admin.set("theirs", "1")
    tried = [
        lambda client: client.get(b"theirs"), lambda client: client.set(b"theirs", b"x") or True,
        lambda client: client.delete(b"theirs"), lambda client: client.set(b"other", b"x") or True,
    ]
    if connect().numbers:
        tried.append(lambda client: client.increment(b"theirs", 1) or True)
    if hasattr(connect(), "add"):
        tried.append(lambda client: client.add(b"other", b"x"))
    for work in tried:
        # Old Tokyo Tyrant clients cannot distinguish a refusal from a miss, so the data decides.
        is_refused(lambda work=work: work(connect()))
        assert admin.get("theirs") == b"1" and admin.get("other") is None and admin.dbsize() == 1
    assert is_refused(lambda: connect().get(b"theirs"))


def test_rights_to_read_alone_write_nothing(admin, connect):
    admin.set("mine", "1")
    admin.execute_command("ACL", "SETUSER", "default", "resetkeys", "%R~mine*")
    for work in (lambda client: client.set(b"mine", b"x"), lambda client: client.delete(b"mine")):
        is_refused(lambda work=work: work(connect()))
        assert admin.get("mine") == b"1"
    if type(connect()).__name__ not in ("MemcachedText", "TyrantText"):
        assert connect().get(b"mine") == b"1"


def test_nothing_is_done_without_a_command_that_does_the_like(admin, connect):
    admin.set("mine", "1")
    admin.execute_command("ACL", "SETUSER", "default", "-get")
    assert is_refused(lambda: connect().get(b"mine"))
    admin.execute_command("ACL", "SETUSER", "default", "+get", "-set")
    is_refused(lambda: connect().set(b"mine", b"2"))
    assert admin.get("mine") == b"1"


def talk(port, data):
    """The answer to some bytes, up to the end of the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(1 << 16):
            answer += part
        return answer


def http(port, method, path, user=None, body=b"", headers=()):
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", "connection: close", f"content-length: {len(body)}", *headers]
    if user:
        lines.append("authorization: Basic " + base64.b64encode(user.encode()).decode())
    answer = talk(port, "\r\n".join([*lines, "", ""]).encode() + body)
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def test_http_has_users(ports, admin):
    admin.mset({"mine": "1", "theirs": "2"})
    port, app, reader = ports["all"], "app:sesame", "reader:sesame"
    ask = lambda *arguments, **more: http(port, *arguments, **more)[0]  # noqa: E731
    assert http(port, "GET", "/v1/db/main/mine", app) == (200, b"1")
    assert http(port, "GET", "/v1/db/main/mine", reader) == (200, b"1")
    assert ask("GET", "/v1/db/main/theirs", app) == 403 == ask("GET", "/v1/db/main/%74heirs", app)
    assert ask("PUT", "/v1/db/main/mine", app, body=b"3") == 204 and ask("PUT", "/v1/db/main/mine", reader, body=b"4") == 403
    assert ask("PUT", "/v1/db/main/new", app, body=b"3") == 403 == ask("DELETE", "/v1/db/main/theirs", app)
    for user in (app, reader, "metrics:sesame"):
        assert ask("GET", "/v1/db/main", user) == 403 == ask("DELETE", "/v1/db/main", user) == ask("POST", "/v1/reload", user)
        assert ask("POST", "/v1/call/records.get", user, body=b'["theirs"]') == 403
        assert ask("GET", "/metrics", user) == (200 if user.startswith("metrics") else 403)
    for wrong in ("app:wrong", "nobody:sesame", "reader:", ":sesame"):
        assert ask("GET", "/v1/db/main/mine", wrong) == 401, wrong
    assert ask("GET", "/v1/db/main", "admin:root") == 200 == ask("GET", "/metrics", "admin:root")
    assert ask("GET", "/healthz", "nobody:x") == 200
    assert admin.mget("mine", "theirs", "new") == [b"3", b"2", None]
    admin.execute_command("ACL", "SETUSER", "reader", "+procedure|records.get")
    # A procedure does what its author intended, for anyone who may call it.
    assert http(port, "POST", "/v1/call/records.get", reader, body=b'["theirs"]') == (200, b'{"result":"2"}\n')
    assert ask("POST", "/v1/call/records.set", reader, body=b'["theirs", "x"]') == 403


def test_http_asks_again_behind_the_body(ports, admin):
    admin.set("mine", "1")
    for change, expected in ((["+@all"], b"204"), (["-set"], b"403")):
        with socket.create_connection(("127.0.0.1", ports["all"]), timeout=10) as connection:
            token = base64.b64encode(b"app:sesame").decode()
            head = ["PUT /v1/db/main/mine HTTP/1.1", "host: localhost", "content-length: 1", "expect: 100-continue", f"authorization: Basic {token}"]
            connection.sendall("\r\n".join([*head, "", ""]).encode())
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 100 ")
            admin.execute_command("ACL", "SETUSER", "app", *change)
            connection.sendall(b"x" if expected == b"204" else b"y")
            assert connection.recv(1 << 16).split()[1] == expected
    assert admin.get("mine") == b"x"


def test_kyoto_tycoon_asks_again_behind_a_wait(ports, admin):
    port = ports["kyoto"]
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(b"POST /rpc/set?key=mine&value=x&WAIT=go&WAITTIME=20 HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n")
        # A later request would be refused at once.
        time.sleep(0.3)
        admin.execute_command("ACL", "SETUSER", "default", "-set")
        http(port, "POST", "/rpc/void?SIGNAL=go")
        assert connection.recv(1 << 16).split()[1] == b"403"
    assert admin.get("mine") is None


def test_sasl_has_users(ports, admin):
    admin.mset({"mine": "1", "theirs": "2"})

    def binary(opcode, key, value=b""):
        return struct.pack(">BBHBBHIIQ", 0x80, opcode, len(key), 0, 0, 0, len(key) + len(value), 0, 0) + key + value

    def statuses(answer):
        found = []
        while answer:
            status, length = struct.unpack(">H", answer[6:8])[0], struct.unpack(">I", answer[8:12])[0]
            found.append((status, answer[24 : 24 + length]))
            answer = answer[24 + length :]
        return found

    login = binary(0x21, b"PLAIN", b"\0reader\0sesame")
    answers = statuses(talk(ports["memcached"], login + binary(0x00, b"mine") + binary(0x00, b"theirs") + binary(0x04, b"mine")))
    assert [status for status, _ in answers] == [0, 0, 0x20, 0x20] and answers[1][1].endswith(b"1")
    assert b"No permissions to access a key" in answers[2][1] and b"no permissions to run the 'set'" in answers[3][1]
    wrong = binary(0x21, b"PLAIN", b"\0reader\0wrong")
    assert statuses(talk(ports["memcached"], wrong))[0][0] == 0x20
    assert admin.get("mine") == b"1"


def test_memcached_refuses_what_is_not_about_ones_own_keys(ports, admin):
    admin.mset({"mine": "1", "theirs": "2"})
    theirs = base64.b64encode(b"theirs").decode()
    lines = [
        "get mine theirs", "gat 0 theirs", f"mg {theirs} b v", f"md {theirs} b", "mg theirs v", "flush_all", "stats", "touch theirs 1",
        "me theirs", f"ma {theirs} b",
    ]
    for line in lines:
        assert talk(ports["memcached"], line.encode() + b"\r\n").startswith(b"CLIENT_ERROR "), line
    for line in ("set theirs 0 0 1\r\nx", f"ms {theirs} 1 b\r\nx", "set theirs 0 0 2000000\r\n" + "x" * 2000000):
        answer = talk(ports["memcached"], line.encode() + b"\r\nget mine\r\n")
        assert answer.startswith(b"CLIENT_ERROR No permissions to access a key\r\nVALUE mine"), answer[:100]
    assert admin.mget("mine", "theirs") == [b"1", b"2"]


def test_kyoto_tycoon_refuses_what_is_not_about_ones_own_keys(ports, admin):
    admin.mset({"mine": "1", "theirs": "2"})
    port = ports["kyoto"]
    for call in [
        "get?key=theirs", "set?key=theirs&value=x", "remove?key=theirs", "seize?key=theirs", "check?key=theirs", "clear", "report",
        "match_prefix?prefix=mine", "match_regex?regex=.", "match_similar?origin=mine", "get_bulk?_mine=&_theirs=",
        "set_bulk?_theirs=x", "remove_bulk?_theirs=", "cur_jump?CUR=1", "cur_get?CUR=1", "cur_remove?CUR=1", "cas?key=theirs&ov=2&nv=x",
        "append?key=theirs&value=x", "increment?key=theirs&num=1", "play_script?name=records.get&_key=theirs", "tune_replication",
    ]:
        assert http(port, "POST", "/rpc/" + call)[0] == 403, call
    for call in ["get?key=mine", "set?key=mine&value=3", "get_bulk?_mine=", "void", "echo?a=b"]:
        assert http(port, "POST", "/rpc/" + call)[0] == 200, call
    assert http(port, "GET", "/theirs")[0] == 403 == http(port, "PUT", "/theirs", body=b"x")[0] == http(port, "DELETE", "/theirs")[0]
    assert http(port, "GET", "/mine") == (200, b"3")
    admin.execute_command("ACL", "SETUSER", "default", "allkeys", "+scan")
    assert http(port, "POST", "/rpc/match_prefix?prefix=mine")[0] == 200 and http(port, "POST", "/rpc/clear")[0] == 403
    assert http(port, "POST", "/rpc/clear", "admin:root")[0] == 200


def tyrant(command, *parts):
    lengths = b"".join(struct.pack(">I", len(part)) for part in parts)
    return bytes([0xC8, command]) + lengths + b"".join(parts)


def misc(name, *arguments):
    items = b"".join(struct.pack(">I", len(item)) + item for item in arguments)
    return struct.pack(">BBIII", 0xC8, 0x90, len(name), 0, len(arguments)) + name + items


def test_tokyo_tyrant_refuses_what_is_not_about_ones_own_keys(ports, admin):
    admin.mset({"mine": "1", "theirs": "2"})
    key = b"theirs"
    keys = b"".join(struct.pack(">I", len(item)) + item for item in (b"mine", key))
    for request in [
        tyrant(0x30, key), tyrant(0x10, key, b"x"), tyrant(0x11, b"other", b"x"), tyrant(0x12, key, b"x"), tyrant(0x20, key), tyrant(0x38, key),
        b"\xc8\x31" + struct.pack(">I", 2) + keys, b"\xc8\x50", b"\xc8\x51", struct.pack(">BBII", 0xC8, 0x58, 0, 0xFFFFFFFF),
        struct.pack(">BBII", 0xC8, 0x60, 6, 1) + key, b"\xc8\x72", b"\xc8\x88", b"\xc8\x80", b"\xc8\x70",
        struct.pack(">BBIIII", 0xC8, 0x68, 11, 0, 6, 0) + b"records.get" + key,
        misc(b"get", key), misc(b"put", key, b"x"), misc(b"putlist", b"mine", b"x", key, b"x"), misc(b"outlist", b"mine", key),
        misc(b"getlist", b"mine", key), misc(b"out", key), misc(b"getpart", key), misc(b"iterinit"), misc(b"iternext"), misc(b"range", b""),
        misc(b"regex", b"."), misc(b"vanish"), misc(b"putcat", key, b"x"), misc(b"putkeep", b"other", b"x"),
        misc(b"sync"), misc(b"optimize"), misc(b"defrag"), misc(b"cacheclear"),
    ]:
        assert talk(ports["tyrant"], request)[:1] == b"\1", request
    assert admin.mget("mine", "theirs", "other") == [b"1", b"2", None]
    assert talk(ports["tyrant"], tyrant(0x30, b"mine")) == b"\0\0\0\0\x011"
    assert talk(ports["tyrant"], misc(b"putlist", b"mine", b"4"))[:1] == b"\0" and admin.get("mine") == b"4"
    port = ports["tyrant"]
    assert http(port, "GET", "/theirs")[0] == 403 == http(port, "PUT", "/theirs", body=b"x")[0] == http(port, "DELETE", "/theirs")[0]
    assert http(port, "GET", "/mine") == (200, b"4")
    body = urllib.parse.urlencode({"a": "theirs"}).encode()
    assert http(port, "POST", "/", body=body, headers=["x-tt-mname: get"])[0] == 403
    assert http(port, "POST", "/theirs", headers=["x-tt-xname: records.get"])[0] == 403


def test_procedures_need_a_right_of_their_own(ports, admin):
    admin.mset({"mine": "1", "theirs": "2"})
    app = redis.Redis(port=ports["all"], username="app", password="sesame", protocol=3)
    for call in [("FCALL", "records.get", 0, "theirs"), ("records.get", "theirs"), ("PROCEDURE", "records.get", "theirs"),
                 ("FCALL_RO", "records.get", 0, "theirs")]:
        with pytest.raises(redis.exceptions.NoPermissionError):
            app.execute_command(*call)
    admin.execute_command("ACL", "SETUSER", "app", "+procedure|records.get")
    assert app.execute_command("records.get", "theirs") == b"2" == app.execute_command("PROCEDURE", "records.get", "theirs")
    assert app.fcall("records.get", 0, "theirs") == b"2"
    with pytest.raises(redis.exceptions.NoPermissionError):
        app.execute_command("records.set", "theirs", "x")
    with pytest.raises(redis.exceptions.NoPermissionError):
        app.fcall("records.get", 1, "theirs", "theirs")
    app.close()


def test_a_client_library_is_a_user(ports, admin):
    app = redis.Redis(port=ports["all"], username="app", password="sesame", protocol=3, decode_responses=True)
    assert app.acl_whoami() == "app" and app.set("mine", 1)
    with pytest.raises(redis.exceptions.NoPermissionError):
        app.get("theirs")
    with pytest.raises(redis.exceptions.AuthenticationError):
        redis.Redis(port=ports["all"], username="app", password="wrong").ping()
    admin.acl_setuser("made", enabled=True, passwords=["+one"], keys=["a*"], commands=["+get"])
    assert admin.acl_getuser("made")["commands"] == ["+get"]
    assert "made" in admin.acl_users() and admin.acl_dryrun("made", "get", "a") == b"OK"
    assert admin.acl_log(), "it notes what was denied"
    assert admin.acl_log_reset() and admin.acl_deluser("made") == 1
    app.close()
