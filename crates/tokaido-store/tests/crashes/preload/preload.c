/* Is put between a process and its disk with LD_PRELOAD: keeps a journal of what it writes, syncs,
 * makes, renames and removes below one directory, and fails or kills at the call it is told to.
 *
 * TOKAIDO_PRELOAD_ROOT     the directory to watch, absolute and without links
 * TOKAIDO_PRELOAD_JOURNAL  the file to append the journal to; journal.rs reads it
 * TOKAIDO_PRELOAD_FAULT    space, short, broken, closed, unread, sync, once, kill or names: see
 *                          `fault_of`; none if not set
 * TOKAIDO_PRELOAD_NTH      which of the calls that can fail in this way fails first, from 1
 * TOKAIDO_PRELOAD_MENDED   a file; once it exists, nothing fails any more
 *
 * Calls are made one at a time, and the journal has them in that order. LMDB's lock file is left
 * out: it is shared memory, and nothing in it outlives the processes that use it.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FDS_MAX 4096
#define PATH_LEN 512

enum fault { NONE, SPACE, SHORT, BROKEN, CLOSED, UNREAD, SYNC, ONCE, KILL };

/* What a call does, as far as failing is concerned. */
enum kind { TAKES_SPACE, GIVES_SPACE, OPENS, READS, SYNCS, SYNCS_NAMES };

/* An open file or directory below the root. */
struct open_file {
    int is_open;
    int is_directory;
    int is_synchronous;
    uint64_t inode;
    char path[PATH_LEN];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct open_file files[FDS_MAX];
static char root[PATH_LEN];
static size_t root_len;
static char mended[PATH_LEN];
static int journal = -1;
static enum fault fault = NONE;
static int is_kill_of_names;
static long nth, calls;
static int is_met;

static void give_up(const char *why)
{
    dprintf(2, "preload: %s\n", why);
    syscall(SYS_exit_group, 99);
}

static enum fault fault_of(const char *name)
{
    if (!strcmp(name, "space")) return SPACE;   /* what takes space fails: ENOSPC */
    if (!strcmp(name, "short")) return SHORT;   /* one write does half, then like `space` */
    if (!strcmp(name, "broken")) return BROKEN; /* everything fails except opening and reading what exists: EIO */
    if (!strcmp(name, "closed")) return CLOSED; /* opening what exists fails: EIO */
    if (!strcmp(name, "unread")) return UNREAD; /* reading and listing what exists fails: EIO */
    if (!strcmp(name, "sync")) return SYNC;     /* one sync fails: EIO; all later ones succeed */
    if (!strcmp(name, "once")) return ONCE;     /* one call fails, but not a read: EIO; all others succeed */
    if (!strcmp(name, "kill")) return KILL;     /* half of the call is done, then SIGKILL */
    if (!strcmp(name, "names")) {               /* like `kill`, at a sync of a directory */
        is_kill_of_names = 1;
        return KILL;
    }
    give_up("no such fault");
    return NONE;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("TOKAIDO_PRELOAD_ROOT");
    if (!path) return;
    snprintf(root, sizeof root, "%s", path);
    root_len = strlen(root);
    const char *to = getenv("TOKAIDO_PRELOAD_JOURNAL");
    if (!to) give_up("no journal");
    journal = syscall(SYS_openat, AT_FDCWD, to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (journal < 0) give_up("cannot open the journal");
    const char *name = getenv("TOKAIDO_PRELOAD_FAULT");
    if (!name) return;
    fault = fault_of(name);
    nth = atol(getenv("TOKAIDO_PRELOAD_NTH"));
    snprintf(mended, sizeof mended, "%s", getenv("TOKAIDO_PRELOAD_MENDED"));
}

/* --- the journal: kind u8, two numbers u64, length u32, bytes --- */

static void put(const struct iovec *parts, int count)
{
    size_t len = 0;
    for (int i = 0; i < count; i++) len += parts[i].iov_len;
    if (syscall(SYS_writev, journal, parts, count) != (long)len) give_up("cannot write the journal");
}

static void note(char kind, uint64_t a, uint64_t b, const void *bytes, uint32_t len)
{
    char head[21];
    head[0] = kind;
    memcpy(head + 1, &a, 8);
    memcpy(head + 9, &b, 8);
    memcpy(head + 17, &len, 4);
    struct iovec parts[] = {{head, sizeof head}, {(void *)bytes, len}};
    put(parts, 2);
}

static void note_text(char kind, uint64_t a, const char *text)
{
    note(kind, a, 0, text, strlen(text));
}

/* --- which files are ours --- */

/* The path below the root, or null. */
static const char *ours(const char *path)
{
    if (!root_len || strncmp(path, root, root_len)) return NULL;
    if (path[root_len] == 0) return "";
    if (path[root_len] != '/') return NULL;
    return strcmp(strrchr(path, '/'), "/lock.mdb") ? path + root_len + 1 : NULL;
}

static struct open_file *open_file(int fd)
{
    if (fd < 0 || fd >= FDS_MAX || !files[fd].is_open) return NULL;
    return &files[fd];
}

/* The path below the root of `path`, taken from the directory `fd`, or null. */
static const char *ours_at(int fd, const char *path, char *room)
{
    if (path[0] == '/') return ours(path);
    struct open_file *directory = open_file(fd);
    if (!directory) return NULL;
    const char *separator = directory->path[0] ? "/" : "";
    if (snprintf(room, PATH_LEN, "%s%s%s", directory->path, separator, path) >= PATH_LEN)
        give_up("a path is too long");
    return room;
}

/* --- failing --- */

static int is_concerned(enum kind kind)
{
    switch (fault) {
    case NONE: return 0;
    case SPACE: case SHORT: return kind == TAKES_SPACE;
    case BROKEN: return kind != OPENS && kind != READS;
    case CLOSED: return kind == OPENS;
    case UNREAD: return kind == READS;
    case SYNC: return kind == SYNCS || kind == SYNCS_NAMES;
    case ONCE: return kind != READS;
    case KILL: return is_kill_of_names ? kind == SYNCS_NAMES : kind != OPENS && kind != READS;
    }
    return 0;
}

static int is_mended(void)
{
    return syscall(SYS_faccessat, AT_FDCWD, mended, F_OK) == 0;
}

/* Whether this call must fail. `what` and `path` go into the journal if it is the first. */
static int fails(enum kind kind, const char *what, const char *path)
{
    if (!is_concerned(kind)) return 0;
    if (++calls < nth || ((fault == SYNC || fault == ONCE) && is_met)) return 0;
    if (is_mended()) {
        fault = NONE;
        return 0;
    }
    if (!is_met) {
        char text[PATH_LEN + 64];
        snprintf(text, sizeof text, "%s %s", what, path);
        note_text('X', calls, text);
        is_met = 1;
    }
    return 1;
}

static void die(void)
{
    syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    for (;;) pause();
}

static int refuse(void)
{
    if (fault == KILL) die();
    errno = fault == SPACE || fault == SHORT ? ENOSPC : EIO;
    return -1;
}

#define LOCKED(...)                      \
    do {                                 \
        pthread_mutex_lock(&mutex);      \
        __VA_ARGS__;                     \
        int code = errno;                \
        pthread_mutex_unlock(&mutex);    \
        errno = code;                    \
    } while (0)

/* --- opening and closing --- */

static int do_open(int at, const char *path, int flags, mode_t mode)
{
    char room[PATH_LEN];
    const char *name = ours_at(at, path, room);
    if (!name) {
        int other = syscall(SYS_openat, at, path, flags, mode);
        if (other >= 0 && other < FDS_MAX) files[other].is_open = 0;
        return other;
    }
    struct stat before;
    int is_new = (flags & O_CREAT) && syscall(SYS_newfstatat, at, path, &before, 0);
    if (fails(is_new ? TAKES_SPACE : OPENS, "open", name)) return refuse();
    int fd = syscall(SYS_openat, at, path, flags, mode);
    if (fd < 0) return fd;
    if (fd >= FDS_MAX) give_up("too many open files");
    struct stat found;
    syscall(SYS_fstat, fd, &found);
    struct open_file *file = &files[fd];
    file->is_open = 1;
    file->is_directory = S_ISDIR(found.st_mode);
    file->is_synchronous = (flags & (O_DSYNC | O_SYNC)) != 0;
    file->inode = found.st_ino;
    snprintf(file->path, PATH_LEN, "%s", name);
    if (is_new) note_text('C', found.st_ino, name);
    else if (flags & O_TRUNC) note('T', found.st_ino, 0, "", 0);
    return fd;
}

static int opening(int at, const char *path, int flags, mode_t mode)
{
    int fd;
    LOCKED(fd = do_open(at, path, flags, mode));
    return fd;
}

#define MODE(flags)                                  \
    mode_t mode = 0;                                 \
    if ((flags) & (O_CREAT | O_TMPFILE)) {           \
        va_list rest;                                \
        va_start(rest, flags);                       \
        mode = va_arg(rest, mode_t);                 \
        va_end(rest);                                \
    }

int open(const char *path, int flags, ...) { MODE(flags) return opening(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return opening(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE(flags) return opening(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE(flags) return opening(at, path, flags, mode); }
int creat(const char *path, mode_t mode) { return opening(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int close(int fd)
{
    int result;
    LOCKED({
        if (open_file(fd)) files[fd].is_open = 0;
        result = syscall(SYS_close, fd);
    });
    return result;
}

/* The C library opens and closes the descriptor of a directory itself. */
DIR *opendir(const char *path)
{
    DIR *(*real)(const char *) = (DIR * (*)(const char *)) dlsym(RTLD_NEXT, "opendir");
    DIR *directory;
    LOCKED({
        const char *name = ours(path);
        if (name && fails(OPENS, "open", name)) {
            refuse();
            directory = NULL;
        } else {
            directory = real(path);
            if (name && directory && dirfd(directory) < FDS_MAX) {
                struct open_file *file = &files[dirfd(directory)];
                file->is_open = file->is_directory = 1;
                file->is_synchronous = 0;
                snprintf(file->path, PATH_LEN, "%s", name);
            }
        }
    });
    return directory;
}

int closedir(DIR *directory)
{
    int (*real)(DIR *) = (int (*)(DIR *))dlsym(RTLD_NEXT, "closedir");
    LOCKED({
        if (open_file(dirfd(directory))) files[dirfd(directory)].is_open = 0;
    });
    return real(directory);
}

static int copied(int from, int to)
{
    if (to >= FDS_MAX && open_file(from)) give_up("too many open files");
    if (to >= 0 && to < FDS_MAX && from < FDS_MAX) files[to] = files[from];
    return to;
}

int dup(int fd)
{
    int result;
    LOCKED(result = copied(fd, syscall(SYS_dup, fd)));
    return result;
}

static int controlled(int fd, int command, void *argument)
{
    int result;
    LOCKED({
        result = syscall(SYS_fcntl, fd, command, argument);
        if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) copied(fd, result);
    });
    return result;
}

int fcntl(int fd, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    return controlled(fd, command, argument);
}

int fcntl64(int fd, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    return controlled(fd, command, argument);
}

/* --- reading, except through a map --- */

static int is_unread(int fd, const char *what)
{
    int result;
    LOCKED({
        struct open_file *file = open_file(fd);
        result = file && fails(READS, what, file->path) ? refuse() : 0;
    });
    return result;
}

ssize_t read(int fd, void *bytes, size_t len)
{
    return is_unread(fd, "read") ? -1 : syscall(SYS_read, fd, bytes, len);
}

ssize_t pread(int fd, void *bytes, size_t len, off_t at)
{
    return is_unread(fd, "read") ? -1 : syscall(SYS_pread64, fd, bytes, len, at);
}

ssize_t pread64(int fd, void *bytes, size_t len, off_t at) { return pread(fd, bytes, len, at); }

struct dirent *readdir(DIR *directory)
{
    struct dirent *(*real)(DIR *) = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir");
    return is_unread(dirfd(directory), "list") ? NULL : real(directory);
}

struct dirent64 *readdir64(DIR *directory)
{
    struct dirent64 *(*real)(DIR *) = (struct dirent64 * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir64");
    return is_unread(dirfd(directory), "list") ? NULL : real(directory);
}

/* --- writing --- */

static int is_zero(const char *bytes, size_t len)
{
    return len && !bytes[0] && !memcmp(bytes, bytes + 1, len - 1);
}

/* A large write of zeros is recorded by its length. */
static void note_write(const struct open_file *file, off_t at, const char *bytes, size_t len)
{
    enum { ZEROS_MIN = 4096 };
    if (len >= ZEROS_MIN && !file->is_synchronous && is_zero(bytes, len)) {
        uint64_t count = len;
        note('Z', file->inode, at, &count, sizeof count);
    } else {
        note(file->is_synchronous ? 'D' : 'W', file->inode, at, bytes, len);
    }
}

static ssize_t do_write(struct open_file *file, int fd, const char *bytes, size_t len, off_t at)
{
    enum kind kind = file->is_synchronous && fault == SYNC ? SYNCS : TAKES_SPACE;
    size_t allowed = len;
    if (fails(kind, "write", file->path)) {
        if (fault == SHORT) {
            allowed = len / 2;
            fault = SPACE;
        } else if (fault == KILL) {
            /* What should be written through is in the page and not on the disk. */
            allowed = file->is_synchronous ? len : len / 2;
            file->is_synchronous = 0;
        } else if (fault == SYNC) {
            /* The page has what was written, the disk does not, and nobody knows. */
            syscall(SYS_pwrite64, fd, bytes, len, at);
            note('W', file->inode, at, bytes, len);
            note('F', file->inode, 0, "", 0);
            return refuse();
        } else {
            return refuse();
        }
    }
    ssize_t done = allowed ? syscall(SYS_pwrite64, fd, bytes, allowed, at) : 0;
    if (done > 0) note_write(file, at, bytes, done);
    if (fault == KILL && is_met) die();
    if (allowed == 0 && len) return refuse();
    return done;
}

static ssize_t write_at(int fd, const void *bytes, size_t len, off_t at)
{
    ssize_t done;
    LOCKED({
        struct open_file *file = open_file(fd);
        done = file ? do_write(file, fd, bytes, len, at) : syscall(SYS_pwrite64, fd, bytes, len, at);
    });
    return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t at) { return write_at(fd, bytes, len, at); }
ssize_t pwrite64(int fd, const void *bytes, size_t len, off_t at) { return write_at(fd, bytes, len, at); }

/* Writes the parts as one, at `at`, or at the file's position if that is negative. */
static ssize_t do_write_parts(struct open_file *file, int fd, const struct iovec *parts, int count, off_t at)
{
    size_t len = 0;
    for (int i = 0; i < count; i++) len += parts[i].iov_len;
    char *all = malloc(len ? len : 1);
    if (!all) give_up("out of memory");
    size_t end = 0;
    for (int i = 0; i < count; i++) {
        memcpy(all + end, parts[i].iov_base, parts[i].iov_len);
        end += parts[i].iov_len;
    }
    off_t from = at < 0 ? syscall(SYS_lseek, fd, 0, SEEK_CUR) : at;
    ssize_t done = do_write(file, fd, all, len, from);
    int code = errno;
    if (at < 0 && done > 0) syscall(SYS_lseek, fd, from + done, SEEK_SET);
    free(all);
    errno = code;
    return done;
}

ssize_t write(int fd, const void *bytes, size_t len)
{
    ssize_t done = 0;
    int is_ours;
    LOCKED({
        struct open_file *file = open_file(fd);
        struct iovec part = {(void *)bytes, len};
        is_ours = file != NULL;
        if (is_ours) done = do_write_parts(file, fd, &part, 1, -1);
    });
    /* Without the lock: a pipe may wait for a reading thread, which takes the lock. */
    return is_ours ? done : syscall(SYS_write, fd, bytes, len);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    ssize_t done;
    LOCKED({
        struct open_file *file = open_file(fd);
        done = file ? do_write_parts(file, fd, parts, count, -1) : syscall(SYS_writev, fd, parts, count);
    });
    return done;
}

static ssize_t write_parts_at(int fd, const struct iovec *parts, int count, off_t at)
{
    ssize_t done;
    LOCKED({
        struct open_file *file = open_file(fd);
        done = file ? do_write_parts(file, fd, parts, count, at)
                    : syscall(SYS_pwritev, fd, parts, count, at, at >> 32);
    });
    return done;
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) { return write_parts_at(fd, parts, count, at); }
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t at) { return write_parts_at(fd, parts, count, at); }

static int truncated(int fd, off_t len)
{
    int result;
    LOCKED({
        struct open_file *file = open_file(fd);
        if (file && fails(GIVES_SPACE, "truncate", file->path)) {
            result = refuse();
        } else {
            result = syscall(SYS_ftruncate, fd, len);
            if (file && !result) note('T', file->inode, len, "", 0);
        }
    });
    return result;
}

int ftruncate(int fd, off_t len) { return truncated(fd, len); }
int ftruncate64(int fd, off_t len) { return truncated(fd, len); }

/* --- what the journal could not follow --- */

static void *mapped(void *at, size_t len, int protection, int flags, int fd, off_t offset)
{
    if ((flags & MAP_SHARED) && (protection & PROT_WRITE) && fd >= 0 && open_file(fd))
        give_up("a file is written by a map");
    return (void *)syscall(SYS_mmap, at, len, protection, flags, fd, offset);
}

void *mmap(void *at, size_t len, int protection, int flags, int fd, off_t offset) { return mapped(at, len, protection, flags, fd, offset); }
void *mmap64(void *at, size_t len, int protection, int flags, int fd, off_t offset) { return mapped(at, len, protection, flags, fd, offset); }

static int allocated(int fd)
{
    if (open_file(fd)) give_up("a file is written by fallocate");
    errno = ENOSYS;
    return -1;
}

int fallocate(int fd, int mode, off_t at, off_t len) { (void)mode; (void)at; (void)len; return allocated(fd); }
int fallocate64(int fd, int mode, off_t at, off_t len) { (void)mode; (void)at; (void)len; return allocated(fd); }

/* Callers that copy within the kernel must read and write instead, as on a system without these calls. */
static int is_refused(int to)
{
    int is_ours;
    LOCKED(is_ours = open_file(to) != NULL);
    if (is_ours) errno = ENOSYS;
    return is_ours;
}

ssize_t copy_file_range(int from, off_t *from_at, int to, off_t *to_at, size_t len, unsigned flags)
{
    return is_refused(to) ? -1 : syscall(SYS_copy_file_range, from, from_at, to, to_at, len, flags);
}

ssize_t sendfile(int to, int from, off_t *from_at, size_t len)
{
    return is_refused(to) ? -1 : syscall(SYS_sendfile, to, from, from_at, len);
}

ssize_t sendfile64(int to, int from, off_t *from_at, size_t len) { return sendfile(to, from, from_at, len); }

/* --- syncing --- */

static int synced(int fd, long call)
{
    int result;
    LOCKED({
        struct open_file *file = open_file(fd);
        if (file && fails(file->is_directory ? SYNCS_NAMES : SYNCS, "sync", file->path)) {
            if (fault != KILL && !file->is_directory) note('F', file->inode, 0, "", 0);
            result = refuse();
        } else {
            result = syscall(call, fd);
            if (file && !result && file->is_directory) note_text('d', 0, file->path);
            if (file && !result && !file->is_directory) note('S', file->inode, 0, "", 0);
        }
    });
    return result;
}

int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

/* --- names --- */

static int do_remove(int at, const char *path, int flags)
{
    char room[PATH_LEN];
    const char *name = ours_at(at, path, room);
    if (name && fails(GIVES_SPACE, "remove", name)) return refuse();
    int result = syscall(SYS_unlinkat, at, path, flags);
    if (name && !result) note_text('U', 0, name);
    return result;
}

int unlinkat(int at, const char *path, int flags)
{
    int result;
    LOCKED(result = do_remove(at, path, flags));
    return result;
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int mkdir(const char *path, mode_t mode)
{
    int result;
    LOCKED({
        const char *name = ours(path);
        struct stat before;
        int is_new = name && syscall(SYS_newfstatat, AT_FDCWD, path, &before, 0);
        if (is_new && fails(TAKES_SPACE, "mkdir", name)) {
            result = refuse();
        } else {
            result = syscall(SYS_mkdirat, AT_FDCWD, path, mode);
            if (name && !result) note_text('M', 0, name);
        }
    });
    return result;
}

/* Moves open files from below `old` to below `new`. */
static void move_open_files(const char *old, const char *new)
{
    size_t len = strlen(old);
    for (int fd = 0; fd < FDS_MAX; fd++) {
        struct open_file *file = open_file(fd);
        if (!file || strncmp(file->path, old, len)) continue;
        char rest[PATH_LEN];
        snprintf(rest, sizeof rest, "%s", file->path + len);
        if (rest[0] && rest[0] != '/') continue;
        if (snprintf(file->path, PATH_LEN, "%s%s", new, rest) >= PATH_LEN) give_up("a path is too long");
    }
}

int rename(const char *from, const char *to)
{
    int result;
    LOCKED({
        const char *old = ours(from);
        const char *new = ours(to);
        if (!old != !new) give_up("a file is moved across the root");
        if (old && fails(TAKES_SPACE, "rename", old)) {
            result = refuse();
        } else {
            result = syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
            if (old && !result) {
                char both[2 * PATH_LEN + 1];
                int len = snprintf(both, sizeof both, "%s%c%s", old, 0, new);
                note('R', 0, 0, both, len);
                move_open_files(old, new);
            }
        }
    });
    return result;
}

/* A full disk reports no free room. */
static int asked(const char *path, struct statvfs *room, int (*real)(const char *, struct statvfs *))
{
    int result = real(path, room);
    LOCKED({
        int is_full = is_met && (fault == SPACE || fault == SHORT) && !is_mended();
        if (ours(path) && is_full) room->f_bavail = 0;
    });
    return result;
}

int statvfs(const char *path, struct statvfs *room)
{
    return asked(path, room, (int (*)(const char *, struct statvfs *))dlsym(RTLD_NEXT, "statvfs"));
}

int statvfs64(const char *path, struct statvfs64 *room)
{
    return asked(path, (struct statvfs *)room, (int (*)(const char *, struct statvfs *))dlsym(RTLD_NEXT, "statvfs64"));
}
