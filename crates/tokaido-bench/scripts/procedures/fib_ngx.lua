-- dialect: ngx
-- route: GET /bench/ngx/fib
ngx.say(require "fib_module" ())
