-- The constants of `apache2`, and `require "tokaido"`.

local core = ...

local apache = core.apache

apache.BANNER = core.rust.banner

apache.constants = {
  version = apache.BANNER,
  OK = 0, DECLINED = -1, DONE = -2, HTTP_MOVED_TEMPORARILY = 302,
  PROXYREQ_NONE = 0, PROXYREQ_PROXY = 1, PROXYREQ_REVERSE = 2, PROXYREQ_RESPONSE = 3,
  AUTHZ_DENIED = 0, AUTHZ_GRANTED = 1, AUTHZ_NEUTRAL = 2, AUTHZ_GENERAL_ERROR = 3,
  AUTHZ_DENIED_NO_USER = 4,
}

-- A handler has the server's databases as `tokaido.tx`; what makes procedures is not for this dialect.
local tokaido = core.tokaido_entries
tokaido.tx = core.transaction
tokaido.read, tokaido.write, tokaido.http = nil, nil, nil
