/*
 * What a disk holds after a power cut.
 *
 * Loaded before the C library (LD_PRELOAD). Everything below POWER_CUT_DIR works as ever; beside it POWER_CUT_SHADOW is kept,
 * a folder in which a write appears only when fsync or fdatasync of its file has returned. Killing the process at any moment
 * leaves in the shadow what a machine without power would find: what was synced, and nothing that was merely written.
 *
 * POWER_CUT_SHADOW   must not lie below POWER_CUT_DIR; begins as a copy of it
 * POWER_CUT_LEAK     percent of writes that reach the shadow at once, as a kernel may write back what it likes, in any order
 * POWER_CUT_SEED     which ones
 * POWER_CUT_IGNORE   1: syncs claim success and do nothing, as a disk that lies
 * POWER_CUT_CONTROL  file whose first byte can be changed at any time: F: writes fail with ENOSPC; E: syncs fail with EIO;
 *                    D: syncs fail with EIO, but for those of write-ahead logs. As with a kernel, what a failed sync should have
 *                    written is lost although it still can be read, and the next sync knows nothing of it.
 *
 * Files are told apart by inode. A new file exists in the shadow from its first sync on (or leaked write). Renaming and removing
 * last at once, as on a file system with a journal, which orders them; paths must be absolute. The shared-memory file of SQLite is
 * mapped, never synced and made anew after a crash: it is left out, as are locks and sockets. Duplicated descriptors are not followed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* The next definition of the function, looked up at its first call. */
#define REAL(name, result, ...)                                                                                                     \
    static result (*real)(__VA_ARGS__);                                                                                             \
    if (!real) real = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

/* A write, or a new length of the file, that is not synced yet. */
struct change {
    struct change *next;
    uint64_t number;
    off_t at;
    size_t length;
    int resizes; /* the file becomes `at` long */
    unsigned char bytes[];
};

struct file {
    struct file *next;
    dev_t dev;
    ino_t ino; /* 0 when it was removed: the number may be given to another */
    char *shadow;
    int shadow_fd; /* -1 until it exists there */
    struct change *first, **last;
};

#define FDS 65536

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct file *files;
static struct file *open_files[FDS];
static uint64_t changes;
static const char *dir, *shadow;
static size_t dir_length;
static int leak, ignore;
static uint64_t random_state;
static volatile const char *control;

static void die(const char *what) {
    fprintf(stderr, "power_cut: %s: %s\n", what, strerror(errno));
    abort();
}

static int real_open(const char *path, int flags, mode_t mode) {
    REAL(open, int, const char *, int, ...);
    return real(path, flags, mode);
}

static void real_close(int fd) {
    REAL(close, int, int);
    real(fd);
}

__attribute__((constructor)) static void set_up(void) {
    const char *text;
    shadow = getenv("POWER_CUT_SHADOW");
    if ((text = getenv("POWER_CUT_LEAK"))) leak = atoi(text);
    if ((text = getenv("POWER_CUT_IGNORE"))) ignore = atoi(text);
    text = getenv("POWER_CUT_SEED");
    random_state = (text ? strtoull(text, NULL, 10) : 0) * 2 + 1;
    if ((text = getenv("POWER_CUT_CONTROL"))) {
        int fd = real_open(text, O_RDONLY, 0);
        if (fd < 0) die(text);
        control = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
        if (control == MAP_FAILED) die(text);
        real_close(fd);
    }
    if (!shadow || !(text = getenv("POWER_CUT_DIR"))) return;
    dir_length = strlen(text);
    dir = text;
}

static int told(char letter) { return control && *control == letter; }

static int ends_with(const char *text, const char *end) {
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

/* Where the file at `path` has its shadow, to be freed; NULL when it has none. */
static char *shadow_of(const char *path) {
    if (!dir || strncmp(path, dir, dir_length) != 0 || path[dir_length] != '/') return NULL;
    if (ends_with(path, "-shm") || ends_with(path, "/lock") || ends_with(path, ".sock")) return NULL;
    char *found;
    if (asprintf(&found, "%s%s", shadow, path + dir_length) < 0) die("asprintf");
    return found;
}

static struct file *file_of(int fd) { return fd >= 0 && fd < FDS ? __atomic_load_n(&open_files[fd], __ATOMIC_ACQUIRE) : NULL; }

static void forget(const char *at) {
    for (struct file *f = files; f; f = f->next)
        if (f->ino && strcmp(f->shadow, at) == 0) f->ino = 0;
}

static void apply(struct file *f, const struct change *c) {
    if (f->shadow_fd < 0 && (f->shadow_fd = real_open(f->shadow, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) < 0) die(f->shadow);
    if (c->resizes) {
        REAL(ftruncate, int, int, off_t);
        if (real(f->shadow_fd, c->at) != 0) die(f->shadow);
        return;
    }
    REAL(pwrite, ssize_t, int, const void *, size_t, off_t);
    if (real(f->shadow_fd, c->bytes, c->length, c->at) != (ssize_t)c->length) die(f->shadow);
}

/* Splitmix64. */
static int leaks(void) {
    uint64_t x = (random_state += 0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return (int)((x ^ (x >> 31)) % 100) < leak;
}

static void remember(struct file *f, const void *bytes, size_t length, off_t at, int resizes) {
    struct change *c = malloc(sizeof *c + length);
    if (!c) die("malloc");
    *c = (struct change){.at = at, .length = length, .resizes = resizes};
    if (length) memcpy(c->bytes, bytes, length);
    pthread_mutex_lock(&lock);
    c->number = ++changes;
    *f->last = c;
    f->last = &c->next;
    if (!resizes && leaks()) apply(f, c);
    pthread_mutex_unlock(&lock);
}

/* A sync ended: what was written before it began is on the disk now, or is lost. */
static void settle(struct file *f, uint64_t upto, int lost) {
    pthread_mutex_lock(&lock);
    if (!lost && f->shadow_fd < 0) f->shadow_fd = real_open(f->shadow, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (!lost && f->shadow_fd < 0) die(f->shadow);
    while (f->first && f->first->number <= upto) {
        struct change *c = f->first;
        if (!lost) apply(f, c);
        f->first = c->next;
        if (!f->first) f->last = &f->first;
        free(c);
    }
    pthread_mutex_unlock(&lock);
}

static int sync_file(int fd, int (*real)(int)) {
    struct file *f = file_of(fd);
    if (!f) return real(fd);
    if (ignore) return 0;
    pthread_mutex_lock(&lock);
    uint64_t upto = changes;
    pthread_mutex_unlock(&lock);
    if (told('E') || (told('D') && !ends_with(f->shadow, "-wal"))) {
        settle(f, upto, 1);
        errno = EIO;
        return -1;
    }
    int result = real(fd);
    if (result == 0) settle(f, upto, 0);
    return result;
}

static int opened(int fd, int flags) {
    if (fd < 0 || !dir) return fd;
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    struct stat stat;
    if (length < 0 || fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode)) return fd;
    path[length] = 0;
    char *at = shadow_of(path);
    if (!at) return fd;
    if (fd >= FDS) die("too many descriptors");
    pthread_mutex_lock(&lock);
    struct file *f = files;
    while (f && (f->dev != stat.st_dev || f->ino != stat.st_ino)) f = f->next;
    if (!f) {
        if (!(f = calloc(1, sizeof *f))) die("calloc");
        *f = (struct file){.next = files, .dev = stat.st_dev, .ino = stat.st_ino, .shadow = at};
        f->shadow_fd = real_open(at, O_RDWR | O_CLOEXEC, 0);
        f->last = &f->first;
        files = f;
    } else {
        free(at);
    }
    __atomic_store_n(&open_files[fd], f, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    if (flags & O_TRUNC) remember(f, NULL, 0, 0, 1);
    return fd;
}

static mode_t mode_of(int flags, va_list list) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0; }

#define OPEN(name)                                                                                                                  \
    int name(const char *path, int flags, ...) {                                                                                    \
        REAL(name, int, const char *, int, ...);                                                                                    \
        va_list list;                                                                                                               \
        va_start(list, flags);                                                                                                      \
        mode_t mode = mode_of(flags, list);                                                                                         \
        va_end(list);                                                                                                               \
        return opened(real(path, flags, mode), flags);                                                                              \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                                                                \
    int name(int at, const char *path, int flags, ...) {                                                                            \
        REAL(name, int, int, const char *, int, ...);                                                                               \
        va_list list;                                                                                                               \
        va_start(list, flags);                                                                                                      \
        mode_t mode = mode_of(flags, list);                                                                                         \
        va_end(list);                                                                                                               \
        return opened(real(at, path, flags, mode), flags);                                                                          \
    }
OPENAT(openat)
OPENAT(openat64)

#define CREAT(name)                                                                                                                 \
    int name(const char *path, mode_t mode) {                                                                                       \
        REAL(name, int, const char *, mode_t);                                                                                      \
        return opened(real(path, mode), O_TRUNC);                                                                                   \
    }
CREAT(creat)
CREAT(creat64)

int close(int fd) {
    REAL(close, int, int);
    if (fd >= 0 && fd < FDS) __atomic_store_n(&open_files[fd], NULL, __ATOMIC_RELEASE);
    return real(fd);
}

/* Whether the write must fail because the disk is full. */
static int full(struct file *f) {
    if (!f || !told('F')) return 0;
    errno = ENOSPC;
    return 1;
}

static void remember_vector(struct file *f, const struct iovec *parts, int count, ssize_t written, off_t at) {
    for (int i = 0; i < count && written > 0; i++) {
        size_t length = (size_t)written < parts[i].iov_len ? (size_t)written : parts[i].iov_len;
        remember(f, parts[i].iov_base, length, at, 0);
        at += (off_t)length;
        written -= (ssize_t)length;
    }
}

/* Where a write without a position went, told after it: right for O_APPEND, too. */
static off_t began(int fd, ssize_t written) { return lseek(fd, 0, SEEK_CUR) - written; }

ssize_t write(int fd, const void *bytes, size_t length) {
    REAL(write, ssize_t, int, const void *, size_t);
    struct file *f = file_of(fd);
    if (full(f)) return -1;
    ssize_t written = real(fd, bytes, length);
    if (f && written > 0) remember(f, bytes, (size_t)written, began(fd, written), 0);
    return written;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(writev, ssize_t, int, const struct iovec *, int);
    struct file *f = file_of(fd);
    if (full(f)) return -1;
    ssize_t written = real(fd, parts, count);
    if (f && written > 0) remember_vector(f, parts, count, written, began(fd, written));
    return written;
}

#define PWRITE(name)                                                                                                                \
    ssize_t name(int fd, const void *bytes, size_t length, off_t at) {                                                              \
        REAL(name, ssize_t, int, const void *, size_t, off_t);                                                                      \
        struct file *f = file_of(fd);                                                                                               \
        if (full(f)) return -1;                                                                                                     \
        ssize_t written = real(fd, bytes, length, at);                                                                              \
        if (f && written > 0) remember(f, bytes, (size_t)written, at, 0);                                                           \
        return written;                                                                                                             \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

#define PWRITEV(name)                                                                                                               \
    ssize_t name(int fd, const struct iovec *parts, int count, off_t at) {                                                          \
        REAL(name, ssize_t, int, const struct iovec *, int, off_t);                                                                 \
        struct file *f = file_of(fd);                                                                                               \
        if (full(f)) return -1;                                                                                                     \
        ssize_t written = real(fd, parts, count, at);                                                                               \
        if (f && written > 0) remember_vector(f, parts, count, written, at);                                                        \
        return written;                                                                                                             \
    }
PWRITEV(pwritev)
PWRITEV(pwritev64)

#define FTRUNCATE(name)                                                                                                             \
    int name(int fd, off_t length) {                                                                                                \
        REAL(name, int, int, off_t);                                                                                                \
        struct file *f = file_of(fd);                                                                                               \
        if (full(f)) return -1;                                                                                                     \
        int result = real(fd, length);                                                                                              \
        if (f && result == 0) remember(f, NULL, 0, length, 1);                                                                      \
        return result;                                                                                                              \
    }
FTRUNCATE(ftruncate)
FTRUNCATE(ftruncate64)

/* Room was made for [at, at + length): what the file gained in length is all that shows. */
static void grown(int fd) {
    struct file *f = file_of(fd);
    struct stat stat;
    if (f && fstat(fd, &stat) == 0) remember(f, NULL, 0, stat.st_size, 1);
}

#define FALLOCATE(name)                                                                                                             \
    int name(int fd, int mode, off_t at, off_t length) {                                                                            \
        REAL(name, int, int, int, off_t, off_t);                                                                                    \
        if (full(file_of(fd))) return -1;                                                                                           \
        int result = real(fd, mode, at, length);                                                                                    \
        if (result == 0) grown(fd);                                                                                                 \
        return result;                                                                                                              \
    }
FALLOCATE(fallocate)
FALLOCATE(fallocate64)

#define POSIX_FALLOCATE(name)                                                                                                       \
    int name(int fd, off_t at, off_t length) {                                                                                      \
        REAL(name, int, int, off_t, off_t);                                                                                         \
        if (full(file_of(fd))) return ENOSPC;                                                                                       \
        int result = real(fd, at, length);                                                                                          \
        if (result == 0) grown(fd);                                                                                                 \
        return result;                                                                                                              \
    }
POSIX_FALLOCATE(posix_fallocate)
POSIX_FALLOCATE(posix_fallocate64)

int fsync(int fd) {
    REAL(fsync, int, int);
    return sync_file(fd, real);
}

int fdatasync(int fd) {
    REAL(fdatasync, int, int);
    return sync_file(fd, real);
}

int rename(const char *from, const char *to) {
    REAL(rename, int, const char *, const char *);
    int result = real(from, to);
    char *before = result == 0 ? shadow_of(from) : NULL, *after = result == 0 ? shadow_of(to) : NULL;
    if (before && after) {
        pthread_mutex_lock(&lock);
        forget(after);
        for (struct file *f = files; f; f = f->next)
            if (f->ino && strcmp(f->shadow, before) == 0) f->shadow = strdup(after);
        if (real(before, after) != 0 && errno != ENOENT) die(before);
        pthread_mutex_unlock(&lock);
    }
    free(before);
    free(after);
    return result;
}

int unlink(const char *path) {
    REAL(unlink, int, const char *);
    int result = real(path);
    char *at = result == 0 ? shadow_of(path) : NULL;
    if (at) {
        pthread_mutex_lock(&lock);
        forget(at);
        real(at);
        pthread_mutex_unlock(&lock);
    }
    free(at);
    return result;
}
