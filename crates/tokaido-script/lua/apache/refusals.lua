-- The names of mod_lua that this dialect does not offer, with the reasons.

local core = ...

local refusals = core.apache.refusals

local REASONS = {
  ["databases of other servers are not reached from here; those of this one are, by require \"tokaido\""] = {
    "dbacquire",
  },
  ["a response leaves as a whole, so that a connection remains one of HTTP"] = {
    "wsupgrade", "wsread", "wspeek", "wswrite", "wsclose", "wsping", "send_interim_response",
  },
  ["to hash a password takes longer than a handler may hold up its worker"] = { "htpassword" },
  ["while a handler slept, its worker would answer nobody"] = { "usleep" },
  ["a handler changes no files and lists no folders"] = {
    "touch", "mkdir", "mkrdir", "rmdir", "get_direntries",
  },
  ["it tells of Apache's own processes, modules or configuration"] = {
    "mpm_query", "scoreboard_process", "scoreboard_worker", "server_info", "state_query",
    "module_info", "loaded_modules", "config", "activeconfig", "exists_config_define",
    "runtime_dir_relative", "server_built", "expr",
  },
  ["there is no configuration by folders, and whoever needs a password checks it in an access_checker"] = {
    "options", "allowoverrides", "satisfies", "some_auth_required", "auth_name", "basic_auth_pw",
  },
  ["the document root is the operator's to choose"] = { "set_document_root", "set_context_info" },
  ["no file stands behind a handler's answer; set the header ETag"] = { "make_etag" },
  ["name the function as input_filter of the file"] = { "add_input_filter" },
}
for reason, names in pairs(REASONS) do
  for _, name in ipairs(names) do refusals[name] = reason end
end
