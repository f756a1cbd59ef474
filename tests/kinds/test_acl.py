"""Users: the same answers as from Redis, and no access without permission."""

import random
import re

import pytest

from .users import commands, filled, rules
from .wire import Wire

HASH = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"


@pytest.fixture
def users(pair):
    """The pair; the test's users are removed when it has ended."""
    yield pair
    for wire in (pair.redis, pair.tokaido):
        names = [name.decode() for _, name in wire.run("ACL", "USERS")[1] if name != b"default"]
        if names:
            wire.run("ACL", "DELUSER", *names)
        wire.run("ACL", "LOG", "RESET")


def test_users_are_made_and_shown_as_there(users):
    users.check_all([("ACL", *words.split()) for words in [
        "SETUSER u", "GETUSER u", "LIST", "USERS", "SETUSER u on >x", "GETUSER u", "LIST", "SETUSER u >y >x", "GETUSER u", "SETUSER u <x",
        "GETUSER u", "SETUSER u <x", f"SETUSER u #{HASH}", f"SETUSER u #{HASH[1:]}", f"SETUSER u #{HASH.upper()}", "LIST",
        f"SETUSER u !{HASH}", f"SETUSER u !{HASH}", "SETUSER u !x", "SETUSER u nopass", "LIST", "SETUSER u >z", "LIST", "SETUSER u resetpass",
        "SETUSER u ~a* %R~b* %W~c %RW~d %r~e &f &g", "LIST", "GETUSER u", "SETUSER u %R~c", "LIST", "SETUSER u %~x", "SETUSER u %X~x",
        "SETUSER u allkeys", "SETUSER u ~x", "LIST", "SETUSER u resetkeys ~x", "SETUSER u &*", "SETUSER u &x", "LIST",
        "SETUSER u resetchannels", "SETUSER u allchannels", "GETUSER u", "SETUSER u +get", "LIST", "GETUSER u", "SETUSER u -@all +config|get", "LIST",
        "SETUSER u +nosuch", "SETUSER u +@nosuch", "SETUSER u -nosuch", "SETUSER u +config|nosuch", "SETUSER u +config|", "SETUSER u +get|",
        "SETUSER u +config|get|x", "SETUSER u -select|0", "SETUSER u +", "SETUSER u -", "SETUSER u +@", "SETUSER u what", "SETUSER u +@all",
        "LIST", "SETUSER u -get", "LIST", "SETUSER u nocommands", "LIST", "SETUSER u allcommands", "LIST", "SETUSER u off", "LIST",
        "SETUSER u skip-sanitize-payload", "LIST", "SETUSER u sanitize-payload", "LIST", "SETUSER u reset", "LIST", "GETUSER u",
        "SETUSER v on nopass (+get ~a) (+set %W~b)", "LIST", "GETUSER v", "SETUSER v (+get", "SETUSER v +get ~c)", "SETUSER v (+nosuch)",
        "SETUSER v (on)", "SETUSER v () ", "LIST", "SETUSER v clearselectors", "LIST", "SETUSER v ON NoPass ALLKEYS AllCommands", "LIST",
        "SETUSER w +get +nosuch", "GETUSER w", "USERS", "DELUSER u nosuch v", "DELUSER u", "DELUSER default", "DELUSER u default", "USERS",
        "GETUSER u", "SETUSER", "GETUSER", "DELUSER", "LOAD x", "LOG x", "LOG 1 2", "LOG -1", "LOG 0", "SAVE x", "LOG RESET", "WHOAMI x",
        "SETUSER x +GET|key", "LIST", "GETUSER x",
    ]])
    users.check_all([("ACL", "SETUSER", name) for name in ["a b", "a\tb", "a\0b", "ok", "ключ"]])
    users.check_all([("ACL", "USERS"), ("ACL", "SETUSER", "ok", "~a b"), ("ACL", "SETUSER", "ok", "&a b"), ("ACL", "LIST")])


def test_what_could_not_be_read_from_a_file_is_refused(wire):
    assert wire.run("ACL", "SETUSER", "", "on") == ("-", "ERR Usernames can't be empty")
    for rule in ("(~a))", "(~a) +get)", "(+get ~x) ~b)"):
        assert wire.run("ACL", "SETUSER", "u", rule)[1].endswith("Syntax error"), rule
    assert b"u" not in [name for _, name in wire.run("ACL", "USERS")[1]]


def test_names_of_procedures_keep_their_case(wire):
    assert wire.run("ACL", "SETUSER", "u", "+PROCEDURE|Hits.Count", "+procedure|hits.count", "+GET|Key") == ("+", "OK")
    [line] = [line for _, line in wire.run("ACL", "LIST")[1] if line.startswith(b"user u ")]
    assert line.endswith(b" -@all +procedure|Hits.Count +procedure|hits.count +get|key")
    assert wire.run("ACL", "DELUSER", "u") == (":", "1")


def test_categories_are_those_of_redis(users):
    redis = {name for _, name in users.redis.run("ACL", "CAT")[1]}
    assert {name for _, name in users.tokaido.run("ACL", "CAT")[1]} == redis | {b"procedure"}
    assert users.tokaido.run("ACL", "CAT", "procedure")[1] == [("$", b"procedure")]
    known = {name for _, name in users.redis.run("COMMAND", "LIST")[1]}
    own = {name for _, name in users.tokaido.run("COMMAND", "LIST")[1]}
    for category in redis:
        theirs, ours = ({name for _, name in wire.run("ACL", "CAT", category)[1]} for wire in (users.redis, users.tokaido))
        # Redis 7.0 lists a subcommand without its container here.
        theirs = {name for name in theirs if name in known or b"|" in name}
        ours = {name for name in ours if name in known}
        assert theirs & own == ours, category


@pytest.mark.parametrize("seed", range(40))
def test_generated_users_may_do_the_same(users, seed):
    rng = random.Random(seed)
    for wire in (users.redis, users.tokaido):
        wire.run("ACL", "SETUSER", "u", "reset")
    made = []
    for given in rules(rng):
        expected, came = (wire.run("ACL", "SETUSER", "u", given) for wire in (users.redis, users.tokaido))
        assert expected == came, given
        made.append(given)
    for _ in range(2):
        tried = [filled(command, rng) for command in commands()]
        asked = [("ACL", "DRYRUN", "u", *command) for command in tried]
        answers = zip(tried, users.redis.run_all(asked), users.tokaido.run_all(asked), strict=True)
        wrong = [(command, redis, tokaido) for command, redis, tokaido in answers if refused(redis) != refused(tokaido)]
        # Redis checks the patterns of SORT only when it runs.
        wrong = [(command, redis, tokaido) for command, redis, tokaido in wrong if not is_of_patterns(redis, tokaido)]
        assert not wrong, f"{made}: {wrong[:5]} of {len(wrong)}"


def refused(answer):
    """What a command is refused for. The wording differs between versions of Redis."""
    kind, text = answer
    if kind == "+":
        return None
    if kind == "-":
        return text
    return re.sub("^(This user|User u) has no permissions to ", "", text.decode())


def is_of_patterns(redis, tokaido):
    return redis == ("+", "OK") and tokaido[0] == "$" and b" option of SORT denied" in tokaido[1]


@pytest.mark.parametrize("seed", range(6))
def test_generated_users_are_what_their_line_says(wire, seed):
    rng = random.Random(seed)
    for _ in range(30):
        wire.run("ACL", "SETUSER", "u", "reset")
        for given in rules(rng):
            wire.run("ACL", "SETUSER", "u", given)
        [line] = [line for _, line in wire.run("ACL", "LIST")[1] if line.startswith(b"user u ")]
        words = line.split()[2:]
        assert wire.run("ACL", "SETUSER", "copy", "reset", *words) == ("+", "OK"), line
        asked = [filled(command, rng) for command in commands()]
        one, other = (wire.run_all([("ACL", "DRYRUN", name, *command) for command in asked]) for name in ("u", "copy"))
        assert [reply[0] for reply in one] == [reply[0] for reply in other], line
    wire.run("ACL", "DELUSER", "u", "copy")


@pytest.fixture
def app(users):
    """Connections to both as a user with access to the keys `a:…`."""
    protocol = users.redis.run("CLIENT", "INFO")
    version = 3 if b"resp=3" in protocol[1] else 2
    users.check_all([("ACL", "SETUSER", "app", "on", ">sesame", "+@all", "~a:*", "&news*"), ("ACL", "SETUSER", "none", "on", ">x")])
    ports = [wire.socket.getpeername()[1] for wire in (users.redis, users.tokaido)]
    wires = [Wire(port, version) for port in ports]
    for wire in wires:
        assert wire.run("AUTH", "app", "sesame") == ("+", "OK")
    yield type(users)(*wires)
    for wire in wires:
        wire.close()


def denied(answer):
    """Whether an answer is about permissions; the wording differs between versions of Redis."""
    return answer[0] == "-" and bool(re.search("NOPERM|ACL|can't (run|access|publish)", answer[1]))


def check_denials(app, tried):
    for command in tried:
        expected, came = app.redis.run(*command), app.tokaido.run(*command)
        assert denied(expected) == denied(came), (command, expected, came)
        if not denied(expected):
            assert expected[0] == came[0], (command, expected, came)


def test_a_user_gets_no_other_key_in_any_way(users, app):
    users.check_all([("SET", "secret", "s"), ("RPUSH", "a:list", "1", "2"), ("SET", "w_1", "x"), ("SET", "a:k", "v")])
    script = "return redis.call('get', 'secret')"
    check_denials(app, [
        ("GET", "secret"), ("GET", "a:k"), ("COPY", "secret", "a:x"), ("COPY", "a:k", "x"), ("COPY", "a:k", "a:y"),
        ("RENAME", "secret", "a:x"), ("RENAME", "a:y", "x"), ("SORT", "a:list", "BY", "w_*"), ("SORT", "a:list", "GET", "w_*"),
        ("SORT", "a:list", "GET", "#"), ("SORT", "a:list", "BY", "nosort"), ("SORT_RO", "a:list", "get", "w_*"),
        ("SORT", "a:list", "STORE", "x"), ("SORT", "a:list", "STORE", "a:sorted"), ("SORT", "a:list", "STORE", "a:b", "STORE", "x"),
        ("EVAL", script, "0"), ("EVAL", script, "1", "a:k"), ("EVAL", script, "1", "secret"), ("EVAL", "return 1", "1", "secret"),
        ("EVAL", "return redis.call('get', KEYS[1])", "1", "a:k"), ("EVAL_RO", script, "0"),
        ("EVAL", "return redis.pcall('get', 'secret')", "0"), ("EVAL", "return redis.call('sort', 'a:list', 'by', 'w_*')", "0"),
        ("EVAL", "return redis.call('publish', 'sport', 'x')", "0"), ("EVAL", "return redis.call('publish', 'news', 'x')", "0"),
        ("OBJECT", "ENCODING", "secret"), ("DUMP", "secret"), ("MGET", "a:k", "secret"), ("MSET", "a:k", "1", "secret", "2"),
        ("GETDEL", "secret"), ("SUNIONSTORE", "a:s", "secret"), ("SUNIONSTORE", "x", "a:s"), ("ZUNIONSTORE", "a:z", "2", "a:z", "secret"),
        ("BITOP", "AND", "a:b", "secret"), ("BITOP", "AND", "x", "a:b"), ("LMPOP", "2", "a:list", "secret", "LEFT"),
        ("BLPOP", "secret", "0"), ("BLMPOP", "0", "1", "secret", "LEFT"), ("BLMOVE", "a:list", "x", "LEFT", "LEFT", "0"),
        ("XREAD", "COUNT", "1", "STREAMS", "a:s", "secret", "0", "0"), ("XREAD", "BLOCK", "0", "STREAMS", "secret", "$"),
        ("XREADGROUP", "GROUP", "g", "c", "STREAMS", "secret", ">"), ("GEORADIUS", "a:g", "1", "1", "1", "m", "STORE", "x"),
        ("WATCH", "secret"), ("WATCH", "a:k", "secret"), ("MEMORY", "USAGE", "secret"), ("TOUCH", "secret"), ("EXISTS", "secret"),
        ("PFMERGE", "a:p", "secret"), ("LCS", "a:k", "secret"), ("SMOVE", "a:s", "x", "m"), ("ZRANGESTORE", "a:z", "secret", "0", "1"),
        ("PUBLISH", "sport", "x"), ("SPUBLISH", "sport", "x"), ("PUBLISH", "news.x", "x"),
    ])
    assert users.tokaido.run("GET", "secret") == ("$", b"s")
    # As in Redis, rules about keys do not hide names: whoever may scan sees them.
    assert b"secret" in [name for _, name in app.tokaido.run("SCAN", "0", "COUNT", "1000")[1][1][1]]


def test_a_script_is_told_what_its_user_may_do(app):
    app.check_all([("EVAL", f"return redis.acl_check_cmd({words})", "0") for words in [
        "'get', 'a:1'", "'get', 'secret'", "'set', 'a:1', 'x'", "'mget', 'a:1', 'b'", "'publish', 'news', 'x'", "'publish', 'x', 'x'",
        "'nosuch'", "'config', 'get', 'x'", "'ping'",
    ]])
    told = [app.tokaido.run("EVAL", f"return redis.acl_check_cmd({words})", "0") for words in [
        "'sort', 'a:1', 'by', 'w_*'", "'sort_ro', 'a:1', 'get', 'w_*'", "'sort', 'a:1', 'by', 'nosort'",
    ]]
    assert [bool(answer[0] == ":" and answer[1] == "1") for answer in told] == [False, False, True], told
    words = ("ACL", "DRYRUN", "app", "SORT", "a:1", "BY", "w_*")
    assert app.tokaido.run(*words) == ("$", b"BY option of SORT denied due to insufficient ACL permissions")
    # With the wording of Redis 7.2.
    assert app.tokaido.run("EVAL", "return redis.call('get', 'x')", "0")[1].startswith(
        "NOPERM ACL failure in script: No permissions to access a key"
    )


def test_a_transaction_asks_again_when_it_runs(users, app):
    for wire in (app.redis, app.tokaido):
        assert wire.run("MULTI") == ("+", "OK")
        assert wire.run("SET", "a:k", "1") == ("+", "QUEUED")
        assert denied(wire.run("SET", "secret", "1"))
        assert wire.run("EXEC")[1].startswith("EXECABORT")
        assert wire.run("MULTI") == ("+", "OK")
        assert wire.run("SET", "a:k", "1") == ("+", "QUEUED")
    users.check_all([("ACL", "SETUSER", "app", "-set"), ("GET", "a:k")])
    assert "NOPERM" in str(app.redis.run("EXEC")) and "no permissions to run the 'set'" in str(app.tokaido.run("EXEC"))
    users.check("GET", "a:k")


def test_a_user_hears_no_other_channel(users, app):
    check_denials(app, [("SUBSCRIBE", "sport"), ("PSUBSCRIBE", "*"), ("PSUBSCRIBE", "news.*"), ("SSUBSCRIBE", "sport"),
        ("SUBSCRIBE", "news", "__keyspace@0__:secret"), ("PSUBSCRIBE", "__key*__:*")])
    app.check_all([("PSUBSCRIBE", "news*"), ("SUBSCRIBE", "news.x")])
    users.check("ACL", "SETUSER", "app", "&more")
    assert [wire.run("PING")[0] for wire in (app.redis, app.tokaido)][0] in "*+"
    users.check_all([("ACL", "SETUSER", "app", "resetchannels", "&news*"), ("PUBLISH", "news.y", "m")])
    for wire in (app.redis, app.tokaido):
        assert b"m" in str(wire.reply()).encode()
    users.check("ACL", "SETUSER", "app", "resetchannels", "&other")
    for wire in (app.redis, app.tokaido):
        assert wire.input.read() == b"", "it is not closed"


def test_a_user_who_loses_rights_loses_them_at_once(users, app):
    app.check_all([("SET", "a:k", "v"), ("ACL", "WHOAMI")])
    users.check_all([("ACL", "SETUSER", "app", "off"), ("ACL", "SETUSER", "app", "-get")])
    assert denied(app.tokaido.run("GET", "a:k")) and denied(app.redis.run("GET", "a:k"))
    app.check_all([("SET", "a:k", "v"), ("AUTH", "app", "sesame")])
    users.check("ACL", "DELUSER", "app")
    for wire in (app.redis, app.tokaido):
        assert wire.input.read() == b"", "it is not closed"


def test_a_user_who_deletes_himself_is_told_so_and_leaves(app):
    app.check("ACL", "DELUSER", "app", "none")
    for wire in (app.redis, app.tokaido):
        assert wire.input.read() == b"", "it is not closed"


def test_a_deleted_user_who_waits_does_not_go_on(users, app):
    for wire in (app.redis, app.tokaido):
        wire.socket.sendall(b"*3\r\n$5\r\nBLPOP\r\n$3\r\na:q\r\n$1\r\n0\r\n")
    wait = lambda wire: any(b"cmd=blpop" in line for line in wire.run("CLIENT", "LIST")[1].splitlines())  # noqa: E731
    for wire in (users.redis, users.tokaido):
        while not wait(wire):
            pass
    # Redis may still give the element to the client, whose connection it closes a little later.
    answers = [wire.run_all([("ACL", "DELUSER", "app"), ("RPUSH", "a:q", "x"), ("LLEN", "a:q")]) for wire in (users.redis, users.tokaido)]
    assert answers[1] == [(":", "1")] * 3 and answers[0][:2] == answers[1][:2]
    for wire in (app.redis, app.tokaido):
        assert wire.input.read() == b"", "it is not closed"


def test_authentication(users, app):
    users.check_all([("ACL", "SETUSER", *words.split()) for words in [
        "two on >one >two +@connection +acl|whoami", "open on nopass +@connection", "closed off >x", "none +@connection",
    ]])
    app.check_all([
        ("AUTH", "two", "one"), ("ACL", "WHOAMI"), ("AUTH", "two", "two"), ("AUTH", "two", "three"), ("ACL", "WHOAMI"),
        ("AUTH", "open", "anything"), ("AUTH", "closed", "x"), ("AUTH", "nosuch", "x"), ("AUTH", "x"), ("AUTH", "none", "x"), ("PING",),
        ("AUTH", "a", "b", "c"), ("AUTH", "app", "sesame"), ("ACL", "WHOAMI"), ("HELLO", "2", "AUTH", "app", "x"), ("ACL", "WHOAMI"),
        ("CLIENT", "KILL", "USER", "nosuch"), ("RESET",), ("ACL", "WHOAMI"),
    ])
    assert b" user=default " in app.tokaido.run("CLIENT", "INFO")[1]
    app.check("AUTH", "app", "sesame")
    assert b" user=app " in app.tokaido.run("CLIENT", "INFO")[1]
    assert users.tokaido.run("CLIENT", "KILL", "USER", "app") == (":", "1")
    assert app.tokaido.input.read() == b""


def test_the_default_user_is_one_as_any_other(own_server):
    with own_server(options=["--password", "one", "--workers", "1", "--sync", "os"]) as server:
        wire = Wire(server.port, 2)
        assert wire.run("PING")[1].startswith("NOAUTH")
        assert wire.run("AUTH", "one") == ("+", "OK") and wire.run("ACL", "WHOAMI") == ("$", b"default")
        assert wire.run("ACL", "SETUSER", "default", "<one", ">two", "-flushall") == ("+", "OK")
        assert wire.run("FLUSHALL")[1].startswith("NOPERM") and wire.run("AUTH", "one")[1].startswith("WRONGPASS")
        other = Wire(server.port, 2)
        assert other.run("AUTH", "two") == ("+", "OK") and other.run("SET", "k", "v") == ("+", "OK")
        assert wire.run("ACL", "SETUSER", "default", "off") == ("+", "OK")
        assert other.run("GET", "k") == ("$", b"v") and other.run("AUTH", "two")[1].startswith("WRONGPASS")
        last = Wire(server.port, 2)
        assert last.run("GET", "k")[1].startswith("NOAUTH")
        for each in (wire, other, last):
            each.close()


def test_a_file_has_the_users(own_server, tmp_path):
    path = tmp_path / "users.acl"
    path.write_text("# mine\n\nuser one on >x ~a:* +@all -@dangerous\nuser two on nopass -@all +ping\n")
    options = ["--acl-file", str(path), "--sync", "os", "--workers", "1"]
    with own_server(options=options) as server:
        operator, one, two = (Wire(server.port, 2) for _ in range(3))
        assert operator.run("CONFIG", "GET", "aclfile") == ("*", [("$", b"aclfile"), ("$", str(path).encode())])
        assert one.run("AUTH", "one", "x") == ("+", "OK") and two.run("AUTH", "two", "") == ("+", "OK")
        assert one.run("SET", "a:k", "v") == ("+", "OK") and one.run("SET", "k", "v")[1].startswith("NOPERM")
        assert operator.run("ACL", "SETUSER", "three", "on", ">z", "(~c +get)") == ("+", "OK")
        assert operator.run("ACL", "SAVE") == ("+", "OK")
        saved = path.read_text().splitlines()
        assert [line.split()[1] for line in saved] == ["default", "one", "three", "two"]
        assert saved[0] == "user default on nopass ~* &* +@all" and path.stat().st_mode & 0o777 == 0o644
        path.write_text("user one on >x ~a:* +@all\nuser wrong +nosuch\nfour\n")
        refused = operator.run("ACL", "LOAD")[1]
        assert ":2: Error in applying operation '+nosuch': Unknown command" in refused and ":3: line should start" in refused
        assert "no change to the previously active ACL rules" in refused
        assert len(operator.run("ACL", "USERS")[1]) == 4 and one.run("PING") == ("+", "PONG")
        # Users that were changed or removed are disconnected; others stay.
        path.write_text("\n".join(line for line in saved if " three " not in line).replace(" ~a:*", " ~b:*"))
        assert operator.run("ACL", "LOAD") == ("+", "OK")
        assert one.input.read() == b"" and two.run("PING") == ("+", "PONG")
        again = Wire(server.port, 2)
        assert again.run("AUTH", "three", "z")[1].startswith("WRONGPASS") and again.run("AUTH", "one", "x") == ("+", "OK")
        assert again.run("GET", "b:k") == ("null",)
        for wire in (operator, one, two, again):
            wire.close()
        server.stop()
        path.write_text("user broken\nuser default +nosuch\n")
        with pytest.raises(AssertionError):
            server.start()
        assert "Error in applying operation" in server.log()
    with pytest.raises(AssertionError):
        own_server(directory="other", options=["--acl-file", str(tmp_path / "nosuch")]).start()


def test_a_file_takes_channels_from_the_default_user(own_server, tmp_path):
    path = tmp_path / "users.acl"
    path.write_text("user default on nopass ~* &* +@all\n")
    with own_server(options=["--acl-file", str(path), "--sync", "os", "--workers", "1"]) as server:
        operator, sport, news = (Wire(server.port, 2) for _ in range(3))
        assert sport.run("SUBSCRIBE", "sport")[0] == "*" == news.run("SUBSCRIBE", "news")[0]
        path.write_text("user default on nopass ~* resetchannels &news +@all\n")
        assert operator.run("ACL", "LOAD") == ("+", "OK")
        assert sport.input.read() == b"" and news.run("PING")[0] == "*" and operator.run("PING") == ("+", "PONG")
        for wire in (operator, sport, news):
            wire.close()


def test_what_was_denied_is_in_the_log(users, app):
    users.check("ACL", "LOG", "RESET")
    users.check("ACL", "SETUSER", "app", "-config")
    for wire in (app.redis, app.tokaido):
        for command in [("GET", "secret"), ("GET", "secret"), ("CONFIG", "GET", "x"), ("PUBLISH", "sport", "x"), ("AUTH", "app", "wrong"),
                        ("EVAL", "return redis.pcall('get', 'hidden')", "0"), ("MULTI",), ("GET", "other"), ("DISCARD",)]:
            wire.run(*command)
    logs = []
    for wire in (users.redis, users.tokaido):
        entries = []
        for kind, fields in wire.run("ACL", "LOG")[1]:
            fields = dict(fields) if kind == "%" else dict(zip(fields[::2], fields[1::2], strict=True))
            entries.append({name[1]: value[1] for name, value in fields.items()})
        logs.append(entries)
    shown = [[{name: entry[name] for name in (b"count", b"reason", b"context", b"object", b"username")} for entry in log] for log in logs]
    assert shown[0] == shown[1]
    assert shown[1][0] == {b"count": "1", b"reason": b"key", b"context": b"multi", b"object": b"other", b"username": b"app"}
    assert b"user=app" in logs[1][0][b"client-info"]
    ids = [int(entry[b"entry-id"]) for entry in logs[1]]
    assert ids == sorted(ids, reverse=True) and len(set(ids)) == len(ids)
    users.check_all([("ACL", "LOG", "RESET"), ("ACL", "LOG")])


def test_there_is_no_file_to_load_or_to_save(users):
    for name in ("LOAD", "SAVE"):
        answers = [wire.run("ACL", name)[1] for wire in (users.redis, users.tokaido)]
        assert all(text.startswith("ERR This Redis instance is not configured to use an ACL file.") for text in answers)
