/* Loaded before libc, so that one process and its children see another time than the machine. The file that
 * FAKECLOCK names holds two numbers: the seconds by which the wall clock is ahead, and those by which the time since
 * boot is ahead of monotonic time, as after a sleep of the machine. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    double wall, boot;
} Ahead;

static const Ahead *ahead(void) {
    static const Ahead none, *found;
    if (found) return found;
    const char *path = getenv("FAKECLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *shared = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(Ahead), PROT_READ, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    return found = shared == MAP_FAILED ? &none : shared;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (result) return result;
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) time->tv_sec += (time_t)ahead()->wall;
    if (clock == CLOCK_BOOTTIME) time->tv_sec += (time_t)ahead()->boot;
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *where) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (where) *where = now.tv_sec;
    return now.tv_sec;
}
