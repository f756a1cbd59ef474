-- What wrk sends with `-- LENGTH` behind its arguments: a POST with a body of so many bytes.
function init(arguments)
  wrk.method = "POST"
  wrk.body = string.rep("x", tonumber(arguments[1]))
end
