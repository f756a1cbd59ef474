-- The loop patterns as a program: run once with few keys, so that they are compiled, and then with all keys, timed.
run(fresh(), arg[1], 2000)
local db = fresh()
collectgarbage()
local start = os.clock()
local sum = run(db, arg[1], tonumber(arg[2]))
print(sum, os.clock() - start)
quit()
