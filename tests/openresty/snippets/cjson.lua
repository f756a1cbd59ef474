-- The modules cjson and cjson.safe.
local cjson, safe = require "cjson", require "cjson.safe"
for i, value in ipairs { 1, -1, 0, 1.5, 1e15, 1e100, 123456789012345678, 0.1, 1 / 3, "a", "", "a/b", "\"\\\b\f\n\r\t\0\1\31\127\255", "日本", true, false, cjson.null, {}, { 1 }, { 1, 2, 3 }, { { {} } }, { a = 1 }, { a = { b = { 1, "x" } } }, { [1] = 1, [3] = 3 }, { [3] = 3 }, { [1.5] = 1 }, { [-1] = 1 }, { 1, 2, cjson.null } } do
try("encode" .. i, cjson.encode, value)
end
try("nil", cjson.encode, nil)
try("none", cjson.encode)
try("two", cjson.encode, 1, 2)
try("function", cjson.encode, print)
try("function in a table", cjson.encode, { print })
try("function as a key", cjson.encode, { [print] = 1 })
try("nan", cjson.encode, 0 / 0)
try("infinite", cjson.encode, 1 / 0)
try("sparse", cjson.encode, { [100] = 1 })
for i, text in ipairs { "1", "-1.5e3", "\"a\"", "[]", "{}", "[1,2,3]", "{\"a\":{\"b\":[true,false,null]}}", " [ 1 , 2 ] ", "\"\\u65e5\\ud83d\\ude00\\n\\/\"", "[1,", "{\"a\"", "x", "", "nan", "0x10", "01", "[1]x", "{1:2}", "\"a", "\"\\x\"", "\"\1\"", "tru", "-", "1e", "[[[[1]]]]", "1.0", "12345678901234567890", "\"\\ud800\"", "/* */1" } do
try("decode" .. i, cjson.decode, text)
try("safely" .. i, safe.decode, text)
end
try("decode a number", cjson.decode, 12)
try("decode nil", cjson.decode, nil)
try("safe encode", safe.encode, print)
try("safe encode in depth", safe.encode, { a = { b = print } })
try("decoded null", function() return cjson.decode("[null]")[1] == cjson.null, cjson.null == ngx.null end)
local own = cjson.new()
try("precision", own.encode_number_precision, 3)
try("precise", own.encode, 1 / 3)
try("others are not", cjson.encode, 1 / 3)
try("sparse", own.encode_sparse_array, true, 2, 5)
try("sparse is an object", own.encode, { [100] = 1 })
try("depth", own.encode_max_depth, 2)
try("too deep", own.encode, { { { 1 } } })
try("just so deep", own.encode, { { 1 } })
try("depth", own.decode_max_depth, 2)
try("too deep", own.decode, "[[[1]]]")
try("invalid", own.encode_invalid_numbers, "null")
try("nan", own.encode, 0 / 0)
try("invalid", own.encode_invalid_numbers, true)
try("nan", own.encode, { 1 / 0, -1 / 0 })
try("bad word", own.encode_invalid_numbers, "maybe")
try("bad depth", own.encode_max_depth, 0)
try("bad precision", own.encode_number_precision, 0)
try("kept", own.encode_keep_buffer, false)
local new = safe.new()
try("new and safe", new.decode, "[")
try("name", function() return cjson._NAME end)
for i, number in ipairs { 99999999999999, 100000000000000, 99999999999999.5, 99999999999999.9, -99999999999999, -100000000000000, 2 ^ 53, -2 ^ 53, -1 / 1e308, 1e-5, 123.456, 5e-324, 1.7976931348623157e308 } do
try("number" .. i, cjson.encode, number)
if number < 1e9 then try("key" .. i, cjson.encode, { [number + 0.5] = 1 }) end
end
try("minus zero", cjson.encode, { -0.0, 0 * -1 })
for digits = 1, 14 do
try("set digits" .. digits, own.encode_number_precision, digits)
try("digits" .. digits, own.encode, { 1, 12, 123456, 1234567890123, 123456789012345, 1234567890123456, 0.1, 123456.789 })
end
for i, text in ipairs { "123456789012345", "1234567890123456", "-123456789012345", "-0", "-", "--1", "1.", ".1", "1.5.5", "1e5", "1E+5", "1e-5x", "1e400", "0", "00", "-01", "0.5", "+1", "9007199254740993", "1 2", "[1 2]", "[1,]", "{,}", "{\"a\":}", "{\"a\":1,}", "[\0]", "\0", "a\0", "\"a\0b\"", "\"\\u0000\"", "\"\\n\\t\\u20ac tail", "\"long text before \\\" and after\"", "\"\\ud83d\\u0041\"", "{\"\\u0061\":1}", "nul", "truefalse", "[true false]", "infinity", "-inf", "NaN" } do
try("odd" .. i, function()
  local value = cjson.decode(text)
  return type(value) == "number" and string.format("%.17g", value) or value
end)
end
try("odd numbers", own.decode_invalid_numbers, true)
for i, text in ipairs { "nan", "-nan", "inf", "-inf", "+1", "0x10", "-0x1f", "010", "infinity", "0x", "nanx", "[1e, 2]" } do
try("invalid" .. i, function() return tostring(own.decode(text)) end)
end
local deep = {}
for _ = 1, 999 do deep = { deep } end
try("1000 deep", function() return #cjson.encode(deep) end)
try("1001 deep", cjson.encode, { deep })
try("1000 deep text", function() return type(cjson.decode(("["):rep(1000) .. ("]"):rep(1000))) end)
try("1001 deep text", cjson.decode, ("["):rep(1001) .. ("]"):rep(1001))
deep[1] = deep
try("circle", cjson.encode, deep)
try("holes", cjson.encode, { 1, nil, 3, nil, nil, 6 })
try("boolean as a key", cjson.encode, { [true] = 1 })
try("text", cjson.encode, ("plain / \127 \200 "):rep(50) .. "\0")
