/* LMDB: many records with random keys, and durable commits. */

#include "peer.h"

#include <lmdb.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEYS 1000000
#define KEY_LEN 16
#define VALUE_LEN 64
#define BATCH 50

static char (*keys)[KEY_LEN];
static char value_bytes[VALUE_LEN];
static MDB_env *environment;

static void check(int code, const char *what)
{
    if (code != 0) {
        fprintf(stderr, "%s: %s\n", what, mdb_strerror(code));
        exit(1);
    }
}

/* Numbers in no order, the same on both sides: the finaliser of SplitMix64. */
static uint64_t scatter(uint64_t n)
{
    n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9ULL;
    n = (n ^ (n >> 27)) * 0x94d049bb133111ebULL;
    return n ^ (n >> 31);
}

static void make_keys(void)
{
    char text[KEY_LEN + 1];
    if (keys)
        return;
    keys = malloc((size_t)KEYS * KEY_LEN);
    peer_check(keys != NULL, "memory");
    for (uint64_t i = 0; i < KEYS; i++) {
        snprintf(text, sizeof text, "%016llx", (unsigned long long)scatter(i + 1));
        memcpy(keys[i], text, KEY_LEN);
    }
    memset(value_bytes, 'v', VALUE_LEN);
}

static void open_environment(void)
{
    if (environment)
        return;
    check(mdb_env_create(&environment), "create");
    check(mdb_env_set_mapsize(environment, (size_t)4 << 30), "mapsize");
    check(mdb_env_open(environment, peer_directory, MDB_NOSYNC, 0644), "open");
}

static MDB_dbi open_database(MDB_txn *transaction)
{
    MDB_dbi database;
    check(mdb_dbi_open(transaction, NULL, 0, &database), "database");
    return database;
}

static void put_all(void)
{
    char path[4000];
    make_keys();
    if (environment)
        mdb_env_close(environment);
    environment = NULL;
    snprintf(path, sizeof path, "%s/data.mdb", peer_directory);
    unlink(path);
    open_environment();
    peer_start();
    for (uint64_t i = 0; i < KEYS;) {
        MDB_txn *transaction;
        check(mdb_txn_begin(environment, NULL, 0, &transaction), "begin");
        MDB_dbi database = open_database(transaction);
        for (int left = BATCH; left > 0 && i < KEYS; left--, i++) {
            MDB_val key = {KEY_LEN, keys[i]}, value = {VALUE_LEN, value_bytes};
            check(mdb_put(transaction, database, &key, &value, 0), "put");
        }
        check(mdb_txn_commit(transaction), "commit");
    }
    peer_stop(KEYS);
}

static MDB_txn *begin_read(void)
{
    MDB_txn *transaction;
    make_keys();
    open_environment();
    check(mdb_txn_begin(environment, NULL, MDB_RDONLY, &transaction), "begin");
    return transaction;
}

static void get_all(void)
{
    MDB_txn *transaction = begin_read();
    MDB_dbi database = open_database(transaction);
    peer_start();
    for (uint64_t i = 0; i < KEYS; i++) {
        MDB_val key = {KEY_LEN, keys[scatter(i + 7) % KEYS]}, value;
        check(mdb_get(transaction, database, &key, &value), "get");
        peer_sum += value.mv_size + *(unsigned char *)value.mv_data;
    }
    peer_stop(KEYS);
    mdb_txn_abort(transaction);
}

static void scan(void)
{
    MDB_txn *transaction = begin_read();
    MDB_cursor *cursor;
    MDB_val key, value;
    check(mdb_cursor_open(transaction, open_database(transaction), &cursor), "cursor");
    peer_start();
    while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0)
        peer_sum += key.mv_size + value.mv_size;
    peer_stop(KEYS);
    mdb_cursor_close(cursor);
    mdb_txn_abort(transaction);
}

#define COMMITS 2000

static MDB_env *open_file(const char *name, unsigned flags)
{
    char path[4000];
    MDB_env *env;
    snprintf(path, sizeof path, "%s/%s", peer_directory, name);
    check(mdb_env_create(&env), "create");
    check(mdb_env_set_mapsize(env, (size_t)1 << 30), "mapsize");
    check(mdb_env_open(env, path, flags | MDB_NOSUBDIR, 0644), "open");
    return env;
}

static void durable_commits(void)
{
    make_keys();
    MDB_env *env = open_file("durable", 0);
    peer_start();
    for (int i = 0; i < COMMITS; i++) {
        MDB_txn *transaction;
        MDB_val key = {KEY_LEN, keys[i]}, value = {VALUE_LEN, value_bytes};
        check(mdb_txn_begin(env, NULL, 0, &transaction), "begin");
        check(mdb_put(transaction, open_database(transaction), &key, &value, 0), "put");
        check(mdb_txn_commit(transaction), "commit");
    }
    peer_stop(COMMITS);
    mdb_env_close(env);
}

static int run(const char *workload)
{
    if (strcmp(workload, "random-put") == 0)
        put_all();
    else if (strcmp(workload, "random-get") == 0)
        get_all();
    else if (strcmp(workload, "random-scan") == 0)
        scan();
    else if (strcmp(workload, "durable-commit") == 0)
        durable_commits();
    else
        return 0;
    return 1;
}

int main(int argc, char **argv)
{
    return peer_serve(argc, argv, run);
}
