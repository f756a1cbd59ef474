/* The peer of benches/cdb.rs: the same tasks through TinyCDB's library.
 *
 * Arguments: a file of rows (key length and value length as 32-bit little-endian numbers, key,
 * value) and the directory to work in. For each letter on standard input, a task is run, and its
 * nanoseconds and a sum over what it read are answered. */

#include <cdb.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PASSES 100
#define OPENINGS 10000
#define STEP 7919
#define ROWS_MAX 10000

static const unsigned char *keys[ROWS_MAX], *values[ROWS_MAX];
static unsigned key_lens[ROWS_MAX], value_lens[ROWS_MAX], rows;
static char path[4096], temporary[4100], directory[4000];

static void check(int is_fine, const char *what)
{
    if (!is_fine) {
        perror(what);
        exit(1);
    }
}

static void load(const char *name)
{
    struct stat status;
    int file = open(name, O_RDONLY);
    check(file >= 0 && fstat(file, &status) == 0, name);
    unsigned char *bytes = malloc(status.st_size), *end = bytes + status.st_size;
    check(read(file, bytes, status.st_size) == status.st_size, name);
    close(file);
    while (bytes < end && rows < ROWS_MAX) {
        key_lens[rows] = cdb_unpack(bytes);
        value_lens[rows] = cdb_unpack(bytes + 4);
        keys[rows] = bytes + 8;
        values[rows] = keys[rows] + key_lens[rows];
        bytes = (unsigned char *)values[rows] + value_lens[rows];
        rows++;
    }
}

static uint64_t write_all(int is_synced)
{
    struct stat status;
    for (int pass = 0; pass < PASSES; pass++) {
        struct cdb_make make;
        int file = open(temporary, O_RDWR | O_CREAT | O_TRUNC, 0666);
        check(file >= 0, temporary);
        cdb_make_start(&make, file);
        for (unsigned i = 0; i < rows; i++)
            check(cdb_make_add(&make, keys[i], key_lens[i], values[i], value_lens[i]) == 0, "add");
        check(cdb_make_finish(&make) == 0, "finish");
        if (is_synced)
            check(fsync(file) == 0, "fsync");
        close(file);
        check(rename(temporary, path) == 0, path);
        if (is_synced) {
            file = open(directory, O_RDONLY);
            check(file >= 0 && fsync(file) == 0, directory);
            close(file);
        }
    }
    check(stat(path, &status) == 0, path);
    return status.st_size;
}

static void open_file(struct cdb *cdb)
{
    int file = open(path, O_RDONLY);
    check(file >= 0 && cdb_init(cdb, file) == 0, path);
}

static void close_file(struct cdb *cdb)
{
    cdb_free(cdb);
    close(cdb_fileno(cdb));
}

static uint64_t digest(struct cdb *cdb)
{
    unsigned len = cdb_datalen(cdb);
    const unsigned char *value = cdb_getdata(cdb);
    check(value != NULL, "value");
    return len + (len ? value[0] : 0);
}

static uint64_t read_in_order(void)
{
    uint64_t sum = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        struct cdb cdb;
        unsigned position;
        open_file(&cdb);
        cdb_seqinit(&position, &cdb);
        while (cdb_seqnext(&position, &cdb) > 0)
            sum += cdb_keylen(&cdb) + digest(&cdb);
        close_file(&cdb);
    }
    return sum;
}

static uint64_t get_all(void)
{
    uint64_t sum = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        struct cdb cdb;
        open_file(&cdb);
        for (unsigned i = 0; i < rows; i++) {
            check(cdb_find(&cdb, keys[i], key_lens[i]) > 0, "find");
            sum += digest(&cdb);
        }
        close_file(&cdb);
    }
    return sum;
}

static uint64_t open_and_get(void)
{
    uint64_t sum = 0;
    for (unsigned n = 0; n < OPENINGS; n++) {
        struct cdb cdb;
        unsigned i = (unsigned)((uint64_t)n * STEP % rows);
        open_file(&cdb);
        check(cdb_find(&cdb, keys[i], key_lens[i]) > 0, "find");
        sum += digest(&cdb);
        close_file(&cdb);
    }
    return sum;
}

static uint64_t run(int letter)
{
    switch (letter) {
    case 'w': return write_all(0);
    case 's': return write_all(1);
    case 'i': return read_in_order();
    case 'g': return get_all();
    default: return open_and_get();
    }
}

int main(int argc, char **argv)
{
    char letter;
    if (argc != 3)
        return 2;
    load(argv[1]);
    snprintf(directory, sizeof directory, "%s", argv[2]);
    snprintf(path, sizeof path, "%s/theirs.cdb", directory);
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    while (read(0, &letter, 1) == 1) {
        struct timespec start, end;
        clock_gettime(CLOCK_MONOTONIC, &start);
        uint64_t sum = run(letter);
        clock_gettime(CLOCK_MONOTONIC, &end);
        long long took = (end.tv_sec - start.tv_sec) * 1000000000LL + end.tv_nsec - start.tv_nsec;
        printf("%lld %llu\n", took, (unsigned long long)sum);
        fflush(stdout);
    }
    return 0;
}
