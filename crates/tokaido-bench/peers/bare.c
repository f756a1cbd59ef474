/* No store at all: what the disk gives. Appends of 512 bytes, each synced. */

#include "peer.h"

#include <fcntl.h>
#include <unistd.h>

#define COMMITS 2000
#define RECORD_LEN 512

static int run(const char *workload)
{
    char path[4000], record[RECORD_LEN];
    if (strcmp(workload, "durable-commit") != 0)
        return 0;
    snprintf(path, sizeof path, "%s/log", peer_directory);
    memset(record, 'v', sizeof record);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
    peer_check(file >= 0 && fsync(file) == 0, path);
    peer_start();
    for (int i = 0; i < COMMITS; i++) {
        peer_check(write(file, record, sizeof record) == (ssize_t)sizeof record, "write");
        peer_check(fdatasync(file) == 0, "fdatasync");
    }
    peer_stop(COMMITS);
    close(file);
    return 1;
}

int main(int argc, char **argv)
{
    return peer_serve(argc, argv, run);
}
