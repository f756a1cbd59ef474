-- dialect: mod_lua
-- route: GET /bench/mod_lua/hello
function handle(r)
  r.content_type = "text/plain"
  r:puts("hello, world\n")
  return apache2.OK
end
