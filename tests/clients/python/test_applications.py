"""Unmodified third-party software that is built on Redis: job queues and locks."""

import threading
import time
from datetime import timedelta

import huey
import pottery
import pytest
import redis
import redis_lock
import rq
from celery import Celery, chord, group
from celery.contrib.testing.worker import start_worker
from support import wait_until


@pytest.fixture
def client(server):
    with server.redis() as client:
        yield client


def test_rq_runs_jobs(client):
    """Its jobs are hashes, its registries sorted sets, its results streams; a worker waits for several lists at once."""
    high, low = rq.Queue("high", connection=client), rq.Queue("low", connection=client)
    sums = [queue.enqueue("operator.add", n, 1) for n, queue in enumerate([low, high, low])]
    failing = low.enqueue("operator.truediv", 1, 0)
    following = low.enqueue("operator.neg", 5, depends_on=sums[0])
    later = low.enqueue_in(timedelta(hours=1), "operator.neg", 6)
    worker = rq.SimpleWorker([high, low], connection=client)
    assert worker.work(burst=True, with_scheduler=False)
    assert [job.return_value() for job in sums] == [1, 2, 3]
    assert following.return_value() == -5
    assert failing.is_failed and "ZeroDivisionError" in failing.latest_result().exc_string
    assert low.failed_job_registry.get_job_ids() == [failing.id]
    assert low.scheduled_job_registry.get_job_ids() == [later.id]
    assert low.count == high.count == 0
    assert failing.requeue() is not None and low.count == 1
    assert low.empty() == 1


@pytest.mark.parametrize("kind", [huey.RedisHuey, huey.PriorityRedisHuey, huey.RedisExpireHuey], ids=lambda kind: kind.__name__)
def test_huey_runs_tasks(server, kind):
    """Its workers wait for elements; schedules are sorted sets, which a script reads."""
    app = kind(f"app-{kind.__name__}", host="127.0.0.1", port=server.port)
    seen = []

    @app.task()
    def add(a, b):
        seen.append((a, b))
        return a + b

    @app.task(retries=1)
    def fail():
        seen.append("fail")
        raise ValueError("on purpose")

    results = [add(n, 1) for n in range(20)]
    failure = fail()
    scheduled = add.schedule((100, 1), delay=0.1)
    consumer = app.create_consumer(workers=2, periodic=False, initial_delay=0.01, scheduler_interval=1, check_worker_health=False)
    consumer.start()
    try:
        assert [result.get(blocking=True, timeout=20) for result in results] == list(range(1, 21))
        with pytest.raises(huey.exceptions.TaskException, match="on purpose"):
            failure.get(blocking=True, timeout=20)
        assert scheduled.get(blocking=True, timeout=20) == 101
    finally:
        consumer.stop(graceful=True)
    assert len(app) == 0
    with app.lock_task("locked"):
        with pytest.raises(huey.exceptions.TaskLockedException), app.lock_task("locked"):
            pass


def test_celery_runs_tasks(server):
    """Its broker waits for several lists, keeps unacknowledged tasks in a hash and a sorted set, and sends
    results as messages."""
    url = f"redis://127.0.0.1:{server.port}"
    app = Celery("app", broker=f"{url}/1", backend=f"{url}/2")
    app.conf.update(worker_hijack_root_logger=False, broker_connection_retry_on_startup=True, result_expires=60)

    @app.task
    def add(a, b):
        return a + b

    @app.task
    def total(numbers):
        return sum(numbers)

    with start_worker(app, pool="solo", perform_ping_check=False, loglevel="ERROR", shutdown_timeout=20):
        assert add.delay(2, 3).get(timeout=20) == 5
        assert group(add.s(n, n) for n in range(10))().get(timeout=20) == [2 * n for n in range(10)]
        assert chord([add.s(n, 1) for n in range(5)])(total.s()).get(timeout=20) == 15
        assert add.apply_async((1, 1), countdown=0.2).get(timeout=20) == 2
    with server.redis(db=1) as broker:
        assert broker.llen("celery") == 0 and broker.hlen("unacked") == 0


def test_a_lock_is_renewed_and_released(client, server):
    """python-redis-lock, whose scripts delete keys and signal."""
    order = []

    def work(name):
        with server.redis() as own, redis_lock.Lock(own, "lock", expire=1, auto_renewal=True):
            order.append(f"{name} in")
            time.sleep(0.05)
            order.append(f"{name} out")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(order) == 10
    assert all(first.split()[0] == second.split()[0] for first, second in zip(order[::2], order[1::2], strict=True))
    lock = redis_lock.Lock(client, "lock", expire=60)
    assert lock.acquire(blocking=False)
    assert not redis_lock.Lock(client, "lock", expire=60).acquire(blocking=False)
    lock.release()
    with pytest.raises(redis_lock.NotAcquired):
        lock.release()


def test_redis_py_locks(client):
    lock = client.lock("lock", timeout=10)
    assert lock.acquire(blocking=False) and lock.owned() and lock.locked()
    assert not client.lock("lock", timeout=10).acquire(blocking=False)
    assert lock.extend(20) and lock.reacquire()
    lock.release()
    with pytest.raises(redis.exceptions.LockError):
        lock.release()


def test_a_lock_on_several_masters(server):
    """Redlock: each database acts as a master."""
    masters = {server.redis(db=number) for number in range(3)}
    lock = pottery.Redlock(key="printer", masters=masters, auto_release_time=5)
    assert lock.acquire(blocking=False) and lock.locked()
    assert not pottery.Redlock(key="printer", masters=masters, auto_release_time=5).acquire(blocking=False)
    lock.extend()
    lock.release()
    wait_until(lambda: not lock.locked(), "the lock is free")
    ids = pottery.NextID(key="ids", masters=masters)
    assert [next(ids) for _ in range(3)] == [1, 2, 3]


@pytest.mark.filterwarnings("ignore::pottery.InefficientAccessWarning")
def test_containers_of_pottery(client):
    """Dictionaries, queues and filters over hashes, lists and bits, changed under WATCH."""
    scores = pottery.RedisDict({"anna": 1}, redis=client, key="scores")
    scores["ben"] = [1, {"x": None}]
    assert dict(scores) == {"anna": 1, "ben": [1, {"x": None}]}
    del scores["anna"]
    assert list(scores) == ["ben"]
    deque = pottery.RedisDeque("abc", maxlen=3, redis=client, key="deque")
    deque.append("d")
    deque.rotate(1)
    assert list(deque) == ["d", "b", "c"]
    filter_ = pottery.BloomFilter(num_elements=100, false_positives=0.01, redis=client, key="filter")
    filter_.update({"a", "b"})
    assert "a" in filter_ and "nosuch" not in filter_
    counter = pottery.HyperLogLog({"a", "b", "a"}, redis=client, key="counter")
    assert len(counter) == 2
