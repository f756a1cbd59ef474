-- dialect: ngx
-- route: PUT /bench/ngx/echo
ngx.req.read_body()
ngx.print(ngx.req.get_body_data())
