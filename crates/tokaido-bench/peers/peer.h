/* What every peer of benches/store has in common.
 *
 * A peer is started with a directory of its own. Each line on standard input names a workload; it
 * runs it, and answers with the nanoseconds of the part that
 * counts, those that the processor worked for it, how many operations they were for, and a sum over
 * what it read, by which the harness sees that all sides have done the same. An unknown workload or
 * a failure ends the peer. */

#ifndef PEER_H
#define PEER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static char peer_directory[3000];
static uint64_t peer_nanoseconds, peer_worked, peer_operations, peer_sum;
static uint64_t peer_started, peer_work_started;

static void peer_fail(const char *what)
{
    perror(what);
    exit(1);
}

static void peer_check(int is_fine, const char *what)
{
    if (!is_fine)
        peer_fail(what);
}

static uint64_t peer_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static void peer_start(void)
{
    peer_work_started = peer_clock(CLOCK_PROCESS_CPUTIME_ID);
    peer_started = peer_clock(CLOCK_MONOTONIC);
}

/* May be called several times: the parts add up. */
static void peer_stop(uint64_t operations)
{
    peer_nanoseconds += peer_clock(CLOCK_MONOTONIC) - peer_started;
    peer_worked += peer_clock(CLOCK_PROCESS_CPUTIME_ID) - peer_work_started;
    peer_operations += operations;
}

static int peer_serve(int argc, char **argv, int (*run)(const char *workload))
{
    char line[200];
    if (argc != 2)
        return 2;
    snprintf(peer_directory, sizeof peer_directory, "%s", argv[1]);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        peer_nanoseconds = peer_worked = peer_operations = peer_sum = 0;
        if (!run(line)) {
            fprintf(stderr, "no workload %s here\n", line);
            return 1;
        }
        printf("%llu %llu %llu %llu\n", (unsigned long long)peer_nanoseconds,
               (unsigned long long)peer_worked, (unsigned long long)peer_operations,
               (unsigned long long)peer_sum);
        fflush(stdout);
    }
    return 0;
}

#endif
