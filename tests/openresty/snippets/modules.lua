-- The modules ngx.re and resty.lrucache.
local r=require"ngx.re" local s=r.split
for i,a in ipairs{{"a,b,c,d",","},{"a,b,c,d",",",nil,nil,2},{"a,b,c,d","(,)"},{"a,b,c,d","(,)",nil,nil,2},{"abcd",""},{"abcd","",nil,nil,2},{"",","},{",",","},{"a,",","},{",a",","},{"a,,b",","},{"a,b,c,,",","},{",,,",","},{"a,b,c,d",",",nil,{pos=3}},{"a,b,c,d","(x)?,"},{"a1b22c","[0-9]+"},{"a1b22c","[0-9]*"},{"abc","(b)"},{"a b  c"," *"},{"abc","x"},{"abc","b|$"},{"a,b,c","(,)",nil,nil,1},{"a,b,c",",",nil,nil,-1},{"a,b,c",",",nil,nil,0},{"abc","("},{"a,b,c,d","(,)(b)?",nil,nil,3},{"abc","^"},{"a,b,c",",",nil,{pos=10}},{123,"2"},{"日本語","","u"},{"a,b",",",nil,nil,nil,{1,2,3,4,5}},{"a,b,c,d","(,)()"}, {"abcd","(?=c)"},{"aXbXc","x","i"},{"a,b,c,d",",",nil,nil,3},{"1,2,3","(\\d),"},{"a,b,c,,,",","},{"a,b,",",",nil,nil,2},{"a,,",",",nil,nil,5}} do
try("split"..i,s,unpack(a,1,6)) end
try("opt",r.opt,"x",1)
try("opt2",r.opt,"jit_stack_size",65536)
local l=require"resty.lrucache"
try("lru",l.new,0)
local c=l.new(2)
c:set("a",1)
c:set("b",2)
try("get",c.get,c,"a")
c:set("c",3)
try("b",c.get,c,"b")
try("count",c.count,c)
try("cap",c.capacity,c)
try("keys",c.get_keys,c)
try("del",c.delete,c,"a")
try("delno",c.delete,c,"zz")
c:set("t",1,-1)
try("stale",c.get,c,"t")
c:set("f",1,10,7)
try("flags",c.get,c,"f")
try("set",c.set,c,"x",nil)
try("getx",c.get,c,"x")
try("flush",c.flush_all,c)
try("count",c.count,c)
try("nil",c.set,c,nil,1)
try("newstr",l.new,"x")
local b=require"string.buffer"
local x=b.new() x:put("a",1)
try("buf",function() return tostring(x),#x,x:get(2) end)
