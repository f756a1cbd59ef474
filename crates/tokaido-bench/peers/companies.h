/* The list of companies in a store that can be changed. A workload's name is companies-TASK-KIND,
 * and a peer has a table of its kinds. */

#ifndef COMPANIES_H
#define COMPANIES_H

#include "rows.h"

#define STORE_OPENINGS 10000

struct kind {
    const char *name;
    void *(*open)(int is_new);
    void (*put)(void *store, const struct row *row);
    void (*read_all)(void *store);
    void (*get)(void *store, const struct row *row);
    void (*close)(void *store);
};

/* Each pass opens the store, empties it, puts all rows, and closes it. */
static void companies_write(const struct kind *kind, int passes)
{
    for (int pass = 0; pass < passes; pass++) {
        void *store = kind->open(1);
        for (unsigned i = 0; i < row_count; i++)
            kind->put(store, &rows[i]);
        kind->close(store);
    }
}

/* One opening: each pass puts all rows, from the second on in place of the same. */
static void companies_rewrite(const struct kind *kind)
{
    void *store = kind->open(1);
    for (int pass = 0; pass < PASSES; pass++)
        for (unsigned i = 0; i < row_count; i++)
            kind->put(store, &rows[i]);
    kind->close(store);
}

/* One opening: each pass reads all rows. */
static void companies_reread(const struct kind *kind)
{
    void *store = kind->open(0);
    for (int pass = 0; pass < PASSES; pass++)
        kind->read_all(store);
    kind->close(store);
}

static void companies_read(const struct kind *kind)
{
    for (int pass = 0; pass < PASSES; pass++) {
        void *store = kind->open(0);
        kind->read_all(store);
        kind->close(store);
    }
}

static void companies_open(const struct kind *kind)
{
    for (unsigned n = 0; n < STORE_OPENINGS; n++) {
        void *store = kind->open(0);
        kind->get(store, looked_up(n));
        kind->close(store);
    }
}

static int companies_run(const struct kind *kinds, size_t count, const char *workload)
{
    static const char prefix[] = "companies-";
    if (strncmp(workload, prefix, sizeof prefix - 1) != 0)
        return 0;
    const char *task = workload + sizeof prefix - 1;
    const char *name = strchr(task, '-');
    for (size_t i = 0; name != NULL && i < count; i++) {
        const struct kind *kind = &kinds[i];
        if (strcmp(kind->name, name + 1) != 0)
            continue;
        load_rows();
        companies_write(kind, 1);
        peer_start();
        if (strncmp(task, "write", 5) == 0) {
            companies_write(kind, PASSES);
            peer_stop(PASSES);
        } else if (strncmp(task, "put", 3) == 0) {
            companies_rewrite(kind);
            peer_stop(PASSES);
        } else if (strncmp(task, "scan", 4) == 0) {
            companies_reread(kind);
            peer_stop(PASSES);
        } else if (strncmp(task, "read", 4) == 0) {
            companies_read(kind);
            peer_stop(PASSES);
        } else {
            companies_open(kind);
            peer_stop(STORE_OPENINGS);
        }
        return 1;
    }
    return 0;
}

#endif
