"""fib(n) by recursion, and the seconds of the processor that it takes."""

import sys
import time


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


start = time.process_time()
result = fib(int(sys.argv[1]))
seconds = time.process_time() - start
print(result, seconds)
