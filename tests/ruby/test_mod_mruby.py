"""Scripts for Apache's mod_mruby, over HTTP; and their language, compared with `ruby` and Debian's `mruby`."""

import base64
import shutil
import subprocess

import pytest

from .language import LANGUAGE

SHIM = """
class Apache
  def self.echo(text) = print("#{text}\\n")
  def self.rputs(text) = print(text.to_s)
end
"""

# Differences of an older mruby, such as Debian 12's, from ruby and Tokaido.
OLD_MRUBY = {
    "integers", "more_strings", "freeze", "methods", "enumerators", "error_classes", "floats", "enumerable", "partition", "any_all",
    "ranges", "loops", "yield", "private", "define_method", "catch", "math", "bits", "sort",
}

FILES = {
    "counter.rb": """# dialect: mod_mruby
# route: /counter/:name
# writes: true
name = Apache::Env.new["MATCH_NAME"]
Apache.rputs Tokaido.tx[:counters].increment(name)
raise "no #{name}" if Apache::Request.new.args == "fail"
""",
    "busy.rb": """# dialect: mod_mruby
board = Apache::Scoreboard.new
limit = board.server_limit * board.thread_limit
alive = board.pid > 0 && board.uptime >= 0 && board.restart_time > 1_700_000_000 && board.cpu_load >= 0
Apache.rputs [board.busy_worker, board.idle_worker + board.busy_worker == limit, board.total_access > 0, alive, board.loadavg.size]
""",
    "guard.rb": """# dialect: mod_mruby
# phase: authn_check_password
# location: /counter/secret
known = Apache::AuthnProvider.new
granted = [known.user, known.password] == %w[anna tea]
Apache.return(granted ? Apache::AuthnProvider::AUTH_GRANTED : Apache::AuthnProvider::AUTH_DENIED)
""",
    "shout.rb": """# dialect: mod_mruby
# phase: output_filter
# location: /busy.rb
filter = Apache::Filter.new
filter.body = "<#{filter.body}>"
""",
    "log.rb": """# dialect: mod_mruby
# phase: log_transaction
request = Apache::Request.new
Apache.log Apache::LOG_INFO, "seen #{request.uri} #{request.status}"
""",
}


@pytest.fixture
def site(own_server, tmp_path):
    made = tmp_path / "procedures"
    made.mkdir()
    for name, text in FILES.items():
        (made / name).write_text(text)
    return own_server(procedures=made).start()


def test_a_handler_counts_and_an_error_undoes(site):
    for count in (1, 2, 3):
        status, headers, body = site.http("GET", "/counter/tea")
        assert (status, body) == (200, b"%d" % count)
        assert "content-type" not in {name.lower() for name in headers}
        status, _, body = site.http("GET", "/counter/tea?fail")
        assert status == 500 and b"no tea" in body
    assert site.redis().execute_command("SELECT", "counters") in (b"OK", "OK", True)


def test_a_password_is_asked_for_where_a_guard_says_so(site):
    def ask(password):
        token = base64.b64encode(password.encode()).decode()
        return site.http("GET", "/counter/secret", headers={"Authorization": f"Basic {token}"})

    status, headers, _ = site.http("GET", "/counter/secret")
    assert status == 401
    assert {name.lower(): value for name, value in headers.items()}["www-authenticate"] == 'Basic realm="Tokaido"'
    assert ask("anna:coffee")[0] == 401
    assert ask("anna:tea")[::2] == (200, b"1")
    assert site.http("GET", "/counter/secretly")[0] == 200


def test_the_scoreboard_has_the_figures_of_the_server(site):
    site.http("GET", "/counter/tea")
    status, _, body = site.http("GET", "/busy.rb")
    assert status == 200, body
    busy, _, rest = body.decode().removeprefix("<[").removesuffix("]>").partition(", ")
    assert int(busy) >= 1 and rest == "true, true, true, 3"


def run(program, path):
    ran = subprocess.run([program, path], capture_output=True, text=True, timeout=60)
    return ran.stdout if ran.returncode == 0 else ran.stderr


@pytest.fixture(scope="module")
def peers():
    missing = [name for name in ("ruby", "mruby") if not shutil.which(name)]
    if missing:
        pytest.skip(f"there is no {' and no '.join(missing)}: apt-get install {' '.join(missing)}")


def test_the_language_is_that_of_ruby_and_mruby(own_server, tmp_path, peers):
    made = tmp_path / "procedures"
    made.mkdir()
    for name, script in LANGUAGE.items():
        (made / f"{name}.rb").write_text(f"# dialect: mod_mruby\n{script}\n")
    site = own_server(procedures=made).start()
    assert len(LANGUAGE) >= 60
    different = []
    for name, script in LANGUAGE.items():
        path = tmp_path / "peer.rb"
        path.write_text(SHIM + script)
        status, _, body = site.http("GET", f"/{name}.rb")
        answers = {"ruby": run("ruby", path)}
        if name not in OLD_MRUBY:
            answers["mruby"] = run("mruby", path)
        for peer, answer in answers.items():
            if (status, body.decode()) != (200, answer):
                different.append(f"{name}: {status} {body.decode()!r}, {peer} {answer!r}")
    assert not different, "\n".join(different)
