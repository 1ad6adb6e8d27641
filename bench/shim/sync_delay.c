/* A slow disk: every fsync and fdatasync takes longer by a fixed time.
 *
 * Preloaded into the process that syncs. NUNCIO_BENCH_SYNC_DELAY_US is the
 * extra time in microseconds; NUNCIO_BENCH_SYNC_MARK names a file that the
 * first delayed sync creates, so that the caller can prove that the delay was
 * in effect (a statically linked program would ignore it without a word). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void delay(void) {
    static int marked;
    const char *us = getenv("NUNCIO_BENCH_SYNC_DELAY_US");
    if (us == NULL) return;
    if (!marked) {
        const char *mark = getenv("NUNCIO_BENCH_SYNC_MARK");
        int fd = mark ? open(mark, O_CREAT | O_WRONLY | O_CLOEXEC, 0644) : -1;
        if (fd >= 0) close(fd);
        marked = 1;
    }
    long left = atol(us);
    struct timespec t = {left / 1000000, (left % 1000000) * 1000};
    while (nanosleep(&t, &t) == -1 && errno == EINTR) {}
}

static int synced(const char *name, int fd) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    int result = real(fd);
    int error = errno;
    delay();
    errno = error;
    return result;
}

int fsync(int fd) { return synced("fsync", fd); }
int fdatasync(int fd) { return synced("fdatasync", fd); }
