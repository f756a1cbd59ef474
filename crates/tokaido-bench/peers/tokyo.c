/* Tokyo Cabinet, hash and B+tree: the list of companies. */

#include "companies.h"

#include <tcbdb.h>
#include <tchdb.h>

static const char *path_of(const char *name)
{
    static char path[4000];
    snprintf(path, sizeof path, "%s/%s", peer_directory, name);
    return path;
}

static void *hash_open(int is_new)
{
    TCHDB *db = tchdbnew();
    int mode = is_new ? HDBOWRITER | HDBOCREAT | HDBOTRUNC : HDBOREADER;
    peer_check(tchdbopen(db, path_of("rows.tch"), mode), "open");
    return db;
}

static void hash_put(void *db, const struct row *row)
{
    peer_check(tchdbput(db, row->key, row->key_len, row->value, row->value_len), "put");
}

static void hash_read_all(void *db)
{
    TCXSTR *key = tcxstrnew(), *value = tcxstrnew();
    peer_check(tchdbiterinit(db), "iterator");
    while (tchdbiternext3(db, key, value)) {
        peer_sum += tcxstrsize(key);
        digest(tcxstrptr(value), tcxstrsize(value));
    }
    tcxstrdel(key);
    tcxstrdel(value);
}

static void hash_get(void *db, const struct row *row)
{
    int len;
    char *value = tchdbget(db, row->key, row->key_len, &len);
    peer_check(value != NULL, "get");
    digest(value, len);
    free(value);
}

static void hash_close(void *db)
{
    peer_check(tchdbclose(db), "close");
    tchdbdel(db);
}

static void *tree_open(int is_new)
{
    TCBDB *db = tcbdbnew();
    int mode = is_new ? BDBOWRITER | BDBOCREAT | BDBOTRUNC : BDBOREADER;
    peer_check(tcbdbopen(db, path_of("rows.tcb"), mode), "open");
    return db;
}

static void tree_put(void *db, const struct row *row)
{
    peer_check(tcbdbput(db, row->key, row->key_len, row->value, row->value_len), "put");
}

static void tree_read_all(void *db)
{
    BDBCUR *cursor = tcbdbcurnew(db);
    for (int is_there = tcbdbcurfirst(cursor); is_there; is_there = tcbdbcurnext(cursor)) {
        int key_len, value_len;
        tcbdbcurkey3(cursor, &key_len);
        const void *value = tcbdbcurval3(cursor, &value_len);
        peer_sum += key_len;
        digest(value, value_len);
    }
    tcbdbcurdel(cursor);
}

static void tree_get(void *db, const struct row *row)
{
    int len;
    const void *value = tcbdbget3(db, row->key, row->key_len, &len);
    peer_check(value != NULL, "get");
    digest(value, len);
}

static void tree_close(void *db)
{
    peer_check(tcbdbclose(db), "close");
    tcbdbdel(db);
}

static const struct kind kinds[] = {
    {"tokyo-hash", hash_open, hash_put, hash_read_all, hash_get, hash_close},
    {"tokyo-tree", tree_open, tree_put, tree_read_all, tree_get, tree_close},
};

static int run(const char *workload)
{
    return companies_run(kinds, sizeof kinds / sizeof *kinds, workload);
}

int main(int argc, char **argv)
{
    return peer_serve(argc, argv, run);
}
