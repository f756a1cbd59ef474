"""Sets and gets keys through a Python client library. Its arguments are the library and the port of a server on this
machine, its input lines of `set` or `get` with a number. It answers each with seconds: real, user, system."""

import gc
import resource
import sys
import time

HOST = "127.0.0.1"
VALUE = b"x" * 64


def redis_py(port):
    import redis

    client = redis.Redis(HOST, port)
    return client.set, client.get


def pymemcache(port):
    from pymemcache.client.base import Client

    # Like the others, it waits for the answer to a set.
    client = Client((HOST, port), no_delay=True, default_noreply=False)
    return client.set, client.get


def pylibmc(port):
    import pylibmc

    client = pylibmc.Client([f"{HOST}:{port}"], behaviors={"tcp_nodelay": True})
    return client.set, client.get


def set_all(put, count):
    for number in range(count):
        if not put(f"key:{number:012}", VALUE):
            sys.exit("a key was not set")


def get_all(get, count):
    for number in range(count):
        if get(f"key:{number:012}") != VALUE:
            sys.exit("another value was read than was set")


def main():
    library, port = sys.argv[1:]
    put, get = {"redis-py": redis_py, "pymemcache": pymemcache, "pylibmc": pylibmc}[library](int(port))
    for line in sys.stdin:
        work, count = line.split()
        gc.collect()
        before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        if work == "set":
            set_all(put, int(count))
        else:
            get_all(get, int(count))
        real, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
        print(real, after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime, flush=True)


main()
