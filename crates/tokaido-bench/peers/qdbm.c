/* QDBM's Depot: the list of companies. */

#include "companies.h"

#include <qdbm/depot.h>

static void *depot_open(int is_new)
{
    char path[4000];
    snprintf(path, sizeof path, "%s/rows.depot", peer_directory);
    DEPOT *db = dpopen(path, is_new ? DP_OWRITER | DP_OCREAT | DP_OTRUNC : DP_OREADER, -1);
    peer_check(db != NULL, "open");
    return db;
}

static void depot_put(void *db, const struct row *row)
{
    peer_check(dpput(db, row->key, row->key_len, row->value, row->value_len, DP_DOVER), "put");
}

static void depot_read_all(void *db)
{
    char *key;
    int key_len, value_len;
    peer_check(dpiterinit(db), "iterator");
    while ((key = dpiternext(db, &key_len)) != NULL) {
        char *value = dpget(db, key, key_len, 0, -1, &value_len);
        peer_check(value != NULL, "get");
        peer_sum += key_len;
        digest(value, value_len);
        free(value);
        free(key);
    }
}

static void depot_get(void *db, const struct row *row)
{
    int len;
    char *value = dpget(db, row->key, row->key_len, 0, -1, &len);
    peer_check(value != NULL, "get");
    digest(value, len);
    free(value);
}

static void depot_close(void *db)
{
    peer_check(dpclose(db), "close");
}

static const struct kind kinds[] = {
    {"qdbm", depot_open, depot_put, depot_read_all, depot_get, depot_close},
};

static int run(const char *workload)
{
    return companies_run(kinds, 1, workload);
}

int main(int argc, char **argv)
{
    return peer_serve(argc, argv, run);
}
