//! Handlers in the style of mod_mruby's examples, and their answers, by Apache's rules.

/// A request.
pub(crate) struct Asked {
    pub(crate) method: &'static str,
    pub(crate) target: &'static str,
    pub(crate) headers: &'static [(&'static str, &'static str)],
    pub(crate) body: &'static str,
}

pub(crate) struct Handler {
    pub(crate) name: &'static str,
    pub(crate) asked: Asked,
    pub(crate) script: &'static str,
    /// Status, headers and body, or the message of the error.
    pub(crate) answer: &'static str,
}

/// Headers of every request.
const HEADERS: &[(&str, &str)] = &[("host", "Example.com:80"), ("user-agent", "test/1.0")];

const fn get(name: &'static str, script: &'static str, answer: &'static str) -> Handler {
    at("/m.rb", name, script, answer)
}

const fn at(
    target: &'static str,
    name: &'static str,
    script: &'static str,
    answer: &'static str,
) -> Handler {
    Handler {
        name,
        asked: Asked { method: "GET", target, headers: HEADERS, body: "" },
        script,
        answer,
    }
}

const fn with(
    headers: &'static [(&'static str, &'static str)],
    name: &'static str,
    script: &'static str,
    answer: &'static str,
) -> Handler {
    let asked = Asked { method: "GET", target: "/m.rb", headers, body: "" };
    Handler { name, asked, script, answer }
}

const fn send(
    method: &'static str,
    body: &'static str,
    name: &'static str,
    script: &'static str,
    answer: &'static str,
) -> Handler {
    let asked = Asked { method, target: "/m.rb", headers: HEADERS, body };
    Handler { name, asked, script, answer }
}

pub(crate) const HANDLERS: &[Handler] = &[
    // From the articles.
    get("hello", "Apache.rputs('Hello, world!')", "200\n\nHello, world!"),
    get(
        "fibonacci",
        "def fib(n) = n < 2 ? n : fib(n - 2) + fib(n - 1)\nApache.rputs fib(20)",
        "200\n\n6765",
    ),
    // Output.
    get("echo", "Apache.echo 'a'\nApache::echo 1\nApache.echo nil", "200\n\na\n1\n\n"),
    get(
        "rputs_any",
        "Apache.rputs [1, :a]\nApache.rputs 2.5\nApache.rputs({ 'a' => 1 })",
        "200\n\n[1, :a]2.5{\"a\" => 1}",
    ),
    get("rputs_chain", "Apache.rputs('a').rputs('b').echo('c')", "200\n\nabc\n"),
    get("bytes", "Apache.rputs \"a\\0b\"", "200\n\na\0b"),
    get("nothing", "", "200\n\n"),
    get(
        "heredoc",
        "Apache.rputs <<~TEXT\n  <h1>a</h1>\n  <p>b</p>\nTEXT",
        "200\n\n<h1>a</h1>\n<p>b</p>\n",
    ),
    get(
        "content_type",
        "r = Apache::Request.new\nr.content_type = 'text/html'\nApache.rputs r.content_type",
        "200\ncontent-type: text/html\n\ntext/html",
    ),
    get("no_content_type", "Apache.rputs Apache::Request.new.content_type.inspect", "200\n\nnil"),
    get(
        "encoding",
        "r = Apache::Request.new\nr.content_encoding = 'gzip'\nApache.rputs r.content_encoding",
        "200\ncontent-encoding: gzip\n\ngzip",
    ),
    // Results and statuses.
    get("return_ok", "Apache.rputs 'a'\nApache.return(Apache::OK)\nApache.rputs 'b'", "200\n\nab"),
    get("return_created", "Apache.rputs 'a'\nApache.return(Apache::HTTP_CREATED)", "201\n\na"),
    get(
        "return_declined",
        "Apache.rputs 'a'\nApache.return(Apache::DECLINED)",
        "404\ncontent-type: application/json\n\n{\"error\":{\"message\":\"Not Found\"}}\n",
    ),
    get(
        "return_not_found",
        "Apache.return(Apache::HTTP_NOT_FOUND)",
        "404\ncontent-type: application/json\n\n{\"error\":{\"message\":\"Not Found\"}}\n",
    ),
    get(
        "return_unavailable",
        "Apache::return(Apache::HTTP_SERVICE_UNAVAILABLE)",
        "503\ncontent-type: application/json\n\n{\"error\":{\"message\":\"Service Unavailable\"}}\n",
    ),
    get(
        "return_nonsense",
        "Apache.return(12)",
        "500\ncontent-type: application/json\n\n{\"error\":{\"message\":\"Internal Server Error\"}}\n",
    ),
    get(
        "return_last",
        "Apache.return(404)\nApache.return(Apache::OK)\nApache.rputs 'a'",
        "200\n\na",
    ),
    get(
        "status",
        "r = Apache::Request.new\nApache.rputs r.status\nr.status = 404\nApache.rputs r.status",
        "404\n\n200404",
    ),
    get(
        "status_line",
        "r = Apache::Request.new\nr.status_line = '410 Gone'\nApache.rputs [r.status_line, r.status]",
        "410\n\n[\"410 Gone\", 410]",
    ),
    get(
        "redirect",
        "Apache::Request.new.headers_out['Location'] = 'http://example.com/'\nApache.return(Apache::HTTP_MOVED_PERMANENTLY)",
        "301\nlocation: http://example.com/\n\n",
    ),
    get(
        "redirect_found",
        "Apache::Headers_out.new['location'] = '/a'\nApache.rputs 'x'\nApache.return 302",
        "302\nlocation: /a\n\n",
    ),
    get("not_modified", "Apache.rputs 'x'\nApache.return(Apache::HTTP_NOT_MODIFIED)", "304\n\n"),
    get("exit_early", "Apache.rputs 'a'\nreturn\nApache.rputs 'b'", "200\n\na"),
    // Headers.
    get(
        "headers_in",
        "Apache.rputs Apache::Headers_in.new.all",
        "200\n\n{\"Host\" => \"Example.com:80\", \"User-Agent\" => \"test/1.0\"}",
    ),
    get(
        "headers_in_case",
        "h = Apache::Request.new.headers_in\nApache.rputs [h['USER-agent'], h[:Host], h['none'], h.user_agent, h.referer]",
        "200\n\n[\"test/1.0\", \"Example.com:80\", nil, \"test/1.0\", nil]",
    ),
    get(
        "headers_in_set",
        "h = Apache::Headers_in.new\nh['X-A'] = 1\nApache.rputs Apache::Headers_in.new['x-a']",
        "200\n\n1",
    ),
    with(
        &[("x-a", "1"), ("x-a", "2")],
        "headers_in_twice",
        "Apache.rputs Apache::Headers_in.new['X-A']",
        "200\n\n1, 2",
    ),
    with(
        &[("referer", "http://a/")],
        "referer",
        "Apache.rputs Apache::Request.new.headers_in.referer",
        "200\n\nhttp://a/",
    ),
    get(
        "headers_out",
        "h = Apache::Headers_out.new\nh['X-A'] = 1\nh['x-a'] = 'b'\nh['X-B'] = 'c'\nApache.rputs h.all",
        "200\nx-a: b\nx-b: c\n\n{\"x-a\" => \"b\", \"X-B\" => \"c\"}",
    ),
    get("headers_out_none", "Apache.rputs Apache::Headers_out.new['a'].inspect", "200\n\nnil"),
    get(
        "cookies",
        "h = Apache::Headers_out.new\nh['Set-Cookie'] = 'a=1'\nh['Set-Cookie'] = 'b=2'\nApache.rputs h['Set-Cookie']",
        "200\nset-cookie: a=1\nset-cookie: b=2\n\na=1",
    ),
    get(
        "headers_of_errors",
        "Apache::Headers_out.new['X-A'] = '1'\nApache.return 403",
        "403\ncontent-type: application/json\n\n{\"error\":{\"message\":\"Forbidden\"}}\n",
    ),
    get(
        "own_headers",
        "h = Apache::Headers_out.new\nh['Content-Length'] = 7\nh['Transfer-Encoding'] = 'chunked'\nh['Date'] = 'x'\nApache.rputs 'a'",
        "200\n\na",
    ),
    get(
        "type_by_header",
        "Apache::Headers_out.new['Content-Type'] = 'text/css'\nApache.rputs 'a'",
        "200\ncontent-type: text/css\n\na",
    ),
    get(
        "type_by_both",
        "Apache::Headers_out.new['Content-Type'] = 'text/css'\nApache::Request.new.content_type = 'text/html'",
        "200\ncontent-type: text/html\n\n",
    ),
    get(
        "line_break",
        "Apache::Headers_out.new['X-A'] = \"a\\r\\nb: c\"",
        "m.rb:2: the value of the header x-a has a control character",
    ),
    // The request.
    at(
        "/m.rb?a=1&b=%20",
        "request",
        "r = Apache::Request.new\nApache.rputs [r.method, r.uri, r.unparsed_uri, r.args, r.protocol, r.the_request]",
        "200\n\n[\"GET\", \"/m.rb\", \"/m.rb?a=1&b=%20\", \"a=1&b=%20\", \"HTTP/1.1\", \"GET /m.rb?a=1&b=%20 HTTP/1.1\"]",
    ),
    at(
        "/m%2erb",
        "decoded",
        "r = Apache::Request.new\nApache.rputs [r.uri, r.unparsed_uri]",
        "200\n\n[\"/m.rb\", \"/m%2erb\"]",
    ),
    at("/m.rb?", "empty_query", "Apache.rputs Apache::Request.new.args.inspect", "200\n\n\"\""),
    get("no_query", "Apache.rputs Apache::Request.new.args.inspect", "200\n\nnil"),
    get(
        "names",
        "r = Apache::Request.new\nApache.rputs [r.hostname, r.scheme, r.filename, r.canonical_filename, r.handler, r.path_info]",
        "200\n\n[\"example.com\", \"http\", \"m.rb\", \"m.rb\", \"mruby-script\", \"\"]",
    ),
    get(
        "numbers",
        "r = Apache::Request.new\nApache.rputs [r.method_number == Apache::M_GET, r.proto_num, r.header_only, r.chunked, r.assbackwards, r.proxyreq, r.content_length]",
        "200\n\n[true, 1001, 0, 0, 0, 0, 0]",
    ),
    get(
        "no_user",
        "r = Apache::Request.new\nApache.rputs [r.user, r.ap_auth_type, r.range, r.vlist_validator, r.document_root, r.body]",
        "200\n\n[nil, nil, nil, nil, nil, nil]",
    ),
    get(
        "kinds_of_request",
        "r = Apache::Request.new\nApache.rputs [r.main?, r.sub_request?, r.prev?, r.internal_redirect?, r.next?, r.external_redirect?]",
        "200\n\n[false, false, false, false, false, false]",
    ),
    get(
        "set_fields",
        "r = Apache::Request.new\nr.args = 'x=1'\nr.user = :bilbo\nr.hostname = 'b'\nr.path_info = '/p'\nq = Apache::Request.new\nApache.rputs [q.args, q.user, q.hostname, q.path_info]",
        "200\n\n[\"x=1\", \"bilbo\", \"b\", \"/p\"]",
    ),
    with(
        &[("range", "bytes=0-1")],
        "range",
        "Apache.rputs Apache::Request.new.range",
        "200\n\nbytes=0-1",
    ),
    with(
        &[("host", "[::1]:80")],
        "host_of_v6",
        "Apache.rputs Apache::Request.new.hostname",
        "200\n\n[::1]",
    ),
    with(
        &[],
        "no_host",
        "Apache.rputs [Apache::Request.new.hostname, Apache::Server.new.hostname]",
        "200\n\n[nil, \"localhost\"]",
    ),
    send(
        "POST",
        "a=1&b=2",
        "body",
        "r = Apache::Request.new\nApache.rputs [r.method, r.body, r.method_number == Apache::M_POST]",
        "200\n\n[\"POST\", \"a=1&b=2\", true]",
    ),
    send("PUT", "a", "body_of_put", "Apache.rputs Apache::Request.new.body.inspect", "200\n\nnil"),
    send(
        "HEAD",
        "",
        "head",
        "Apache.rputs [Apache::Request.new.method, Apache::Request.new.header_only]",
        "200\n\n[\"HEAD\", 1]",
    ),
    send(
        "POST",
        "{\"a\": [1]}",
        "json",
        "Apache.rputs JSON.parse(Apache::Request.new.body)['a'].to_json",
        "200\n\n[1]",
    ),
    get(
        "form",
        "params = 'a=1&b=2'.split('&').map { |pair| pair.split('=') }.to_h\nApache.rputs params['b']",
        "200\n\n2",
    ),
    get(
        "method_dispatch",
        "case Apache::Request.new.method\nwhen 'GET' then Apache.rputs 'got'\nelse Apache.return 405\nend",
        "200\n\ngot",
    ),
    send(
        "DELETE",
        "",
        "method_refused",
        "case Apache::Request.new.method\nwhen 'GET' then Apache.rputs 'got'\nelse Apache.return 405\nend",
        "405\ncontent-type: application/json\n\n{\"error\":{\"message\":\"Method Not Allowed\"}}\n",
    ),
    // Notes, the environment, the connection, the server.
    get(
        "notes",
        "n = Apache::Notes.new\nn['memo'] = 'hello'\nApache.rputs('memo = ' + n['memo'] + '<br>')\nApache.rputs Apache::Request.new.notes['MEMO']",
        "200\n\nmemo = hello<br>hello",
    ),
    at(
        "/m.rb?q",
        "env",
        "e = Apache::Env.new\nApache.rputs %w[REQUEST_METHOD QUERY_STRING REQUEST_URI SERVER_NAME SERVER_PORT REMOTE_ADDR HTTP_USER_AGENT GATEWAY_INTERFACE].map { |n| e[n] }.join(' ')",
        "200\n\nGET q /m.rb?q example.com 80 192.0.2.7 test/1.0 CGI/1.1",
    ),
    get(
        "env_set",
        "e = Apache::Env.new\ne['A'] = 1\nApache.rputs [e['A'], e['NONE'], Apache::Env.new.all['A']]",
        "200\n\n[\"1\", nil, \"1\"]",
    ),
    with(
        &[("authorization", "Basic x"), ("proxy", "evil")],
        "env_secrets",
        "e = Apache::Env.new\nApache.rputs [e['HTTP_AUTHORIZATION'], e['HTTP_PROXY']]",
        "200\n\n[nil, nil]",
    ),
    get(
        "connection",
        "c = Apache::Connection.new\nApache.rputs [c.remote_ip, c.remote_port, c.local_ip, c.local_port, c.remote_host]",
        "200\n\n[\"192.0.2.7\", 4711, \"192.0.2.1\", 80, nil]",
    ),
    get(
        "server",
        "s = Apache::Server.new\nApache.rputs [s.hostname, s.redirect_server_port, s.redirect_server_scheme, s.keep_alive, s.is_virtual, s.document_root]",
        "200\n\n[\"example.com\", 80, \"http\", 1, 0, nil]",
    ),
    get(
        "allow_by_address",
        "allowed = ['192.0.2.7', '192.0.2.8']\nif allowed.include?(Apache::Connection.new.remote_ip)\n  Apache.rputs 'in'\nelse\n  Apache.return(Apache::HTTP_FORBIDDEN)\nend",
        "200\n\nin",
    ),
    get(
        "block_by_agent",
        "if Apache::Request.new.headers_in.user_agent =~ /bot|^test/i\n  Apache.return(Apache::HTTP_FORBIDDEN)\nend",
        "403\ncontent-type: application/json\n\n{\"error\":{\"message\":\"Forbidden\"}}\n",
    ),
    get(
        "unified",
        "if server_name == 'NGINX'\n  Server = Nginx\nelsif server_name == 'Apache'\n  Server = Apache\nend\nServer::rputs \"Hello #{Server::module_name} world!\"",
        "200\n\nHello mod_mruby world!",
    ),
    get("server_class", "get_server_class.rputs get_server_class", "200\n\nApache"),
    get(
        "no_scoreboard_here",
        "Apache::Scoreboard.new.busy_worker",
        "m.rb:2: tx.command, tx.call and Apache::Scoreboard need a server around them",
    ),
    // The log.
    get(
        "errlogger",
        "Apache.errlogger(Apache::LOG_WARN, 'careful')\nApache.log 7, 'x'\nApache.syslogger 3, 'y'\nApache.rputs Apache::Request.new.error_log(Apache::APLOG_DEBUG, 'z')",
        "200\n\nz",
    ),
    // Ruby itself.
    get(
        "class",
        "class Page\n  def initialize(title) = @title = title\n  def to_s = \"<h1>#{@title}</h1>\"\nend\nApache.rputs Page.new('a')",
        "200\n\n<h1>a</h1>",
    ),
    get(
        "module_methods",
        "module Text\n  def self.up(s) = s.upcase\nend\nApache.rputs Text.up('a')",
        "200\n\nA",
    ),
    get("blocks", "Apache.rputs (1..3).map { |i| i * i }.select(&:odd?).inject(:+)", "200\n\n10"),
    get(
        "globals",
        "$hoge = 1\nbefore = global_variables.include?(:$hoge)\nafter = Apache.remove_global_variable(:$hoge).include?(:$hoge)\nApache.rputs [before, after, $hoge]",
        "200\n\n[true, false, nil]",
    ),
    get(
        "rescue",
        "begin\n  raise ArgumentError, 'a'\nrescue => e\n  Apache.rputs e.message\nensure\n  Apache.rputs 'b'\nend",
        "200\n\nab",
    ),
    get(
        "error",
        "Apache.rputs 'a'\nnobody.there",
        "m.rb:3: undefined method 'nobody' for Object (NoMethodError)",
    ),
    get(
        "refused",
        "Apache.sleep(1)",
        "m.rb:2: Apache.sleep is not offered: it would hold up a worker; see docs/mod_mruby.md (NotImplementedError)",
    ),
    get(
        "rewrite",
        "uri = '/hoge/a/b'\nmatch = Regexp.new('^/hoge/(.*)').match(uri)\nredirect = '/fuga/' + match[1] if match\nApache.rputs redirect",
        "200\n\n/fuga/a/b",
    ),
    // Rack.
    get(
        "rack",
        "run ->(env) { [200, { 'Content-Type' => 'text/plain', 'x-a' => '1' }, ['a', 'b']] }",
        "200\ncontent-type: text/plain\nx-a: 1\n\nab",
    ),
    get(
        "rack_pairs",
        "class App\n  def call(env) = [201, [['set-cookie', 'a'], ['set-cookie', 'b']], [env['REQUEST_METHOD']]]\nend\nrun App.new",
        "201\nset-cookie: a\nset-cookie: b\n\nGET",
    ),
    get(
        "rack_not_found",
        "run ->(env) { [404, {}, [\"no #{env['PATH_INFO']}\"]] }",
        "404\n\nno /m.rb",
    ),
    at(
        "/m.rb?a=b",
        "rack_env",
        "run ->(env) { [200, {}, [env.values_at('QUERY_STRING', 'SERVER_NAME', 'REMOTE_ADDR', 'SERVER_PORT', 'HTTP_USER_AGENT', 'rack.url_scheme').join(' ')]] }",
        "200\n\na=b example.com 192.0.2.7 80 test/1.0 http",
    ),
    get(
        "rack_wrong",
        "run ->(env) { [200, {}, 'text'] }",
        "m.rb:2: the body of a response is an array, this is String (TypeError)",
    ),
];
