-- dialect: ngx
-- route: GET /bench/ngx/hello
ngx.header.content_type = "text/plain"
ngx.say("hello, world")
