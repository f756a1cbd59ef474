/* TinyCDB: the list of companies as a constant database. */

#include "rows.h"

#include <cdb.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[4000], temporary[4100];

static void write_all(int is_synced)
{
    struct stat status;
    load_rows();
    peer_start();
    for (int pass = 0; pass < PASSES; pass++) {
        struct cdb_make make;
        int file = open(temporary, O_RDWR | O_CREAT | O_TRUNC, 0666);
        peer_check(file >= 0, temporary);
        cdb_make_start(&make, file);
        for (unsigned i = 0; i < row_count; i++) {
            const struct row *row = &rows[i];
            peer_check(cdb_make_add(&make, row->key, row->key_len, row->value, row->value_len) == 0,
                       "add");
        }
        peer_check(cdb_make_finish(&make) == 0, "finish");
        if (is_synced)
            peer_check(fsync(file) == 0, "fsync");
        close(file);
        peer_check(rename(temporary, path) == 0, path);
        if (is_synced) {
            file = open(peer_directory, O_RDONLY);
            peer_check(file >= 0 && fsync(file) == 0, peer_directory);
            close(file);
        }
    }
    peer_stop(PASSES);
    peer_check(stat(path, &status) == 0, path);
    peer_sum = status.st_size;
}

static void open_file(struct cdb *cdb)
{
    int file = open(path, O_RDONLY);
    peer_check(file >= 0 && cdb_init(cdb, file) == 0, path);
}

static void close_file(struct cdb *cdb)
{
    cdb_free(cdb);
    close(cdb_fileno(cdb));
}

static void digest_found(struct cdb *cdb)
{
    const void *value = cdb_getdata(cdb);
    peer_check(value != NULL, "value");
    digest(value, cdb_datalen(cdb));
}

static void read_all(void)
{
    peer_start();
    for (int pass = 0; pass < PASSES; pass++) {
        struct cdb cdb;
        unsigned position;
        open_file(&cdb);
        cdb_seqinit(&position, &cdb);
        while (cdb_seqnext(&position, &cdb) > 0) {
            peer_sum += cdb_keylen(&cdb);
            digest_found(&cdb);
        }
        close_file(&cdb);
    }
    peer_stop(PASSES);
}

static void get_all(void)
{
    peer_start();
    for (int pass = 0; pass < PASSES; pass++) {
        struct cdb cdb;
        open_file(&cdb);
        for (unsigned i = 0; i < row_count; i++) {
            peer_check(cdb_find(&cdb, rows[i].key, rows[i].key_len) > 0, "find");
            digest_found(&cdb);
        }
        close_file(&cdb);
    }
    peer_stop(PASSES);
}

static void open_and_get(void)
{
    peer_start();
    for (unsigned n = 0; n < OPENINGS; n++) {
        struct cdb cdb;
        const struct row *row = looked_up(n);
        open_file(&cdb);
        peer_check(cdb_find(&cdb, row->key, row->key_len) > 0, "find");
        digest_found(&cdb);
        close_file(&cdb);
    }
    peer_stop(OPENINGS);
}

static int run(const char *workload)
{
    snprintf(path, sizeof path, "%s/rows.cdb", peer_directory);
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    if (strcmp(workload, "cdb-write") == 0) {
        write_all(0);
        return 1;
    }
    if (strcmp(workload, "cdb-write-synced") == 0) {
        write_all(1);
        return 1;
    }
    if (row_count == 0 || access(path, R_OK) != 0) {
        write_all(0);
        peer_nanoseconds = peer_worked = peer_operations = peer_sum = 0;
    }
    if (strcmp(workload, "cdb-read") == 0)
        read_all();
    else if (strcmp(workload, "cdb-get") == 0)
        get_all();
    else if (strcmp(workload, "cdb-open") == 0)
        open_and_get();
    else
        return 0;
    return 1;
}

int main(int argc, char **argv)
{
    return peer_serve(argc, argv, run);
}
