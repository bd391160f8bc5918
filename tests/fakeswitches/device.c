/* A preload library in place of the driver's device nodes. What it plays lies in the folder FAKESWITCHES:
 *
 *   nvidiactl, nvidiaN   stand for the nodes of the same name in /dev; without the file there is no node
 *   script               lines of a key and a number, read before every call:
 *                          version_branch, bind_status, bind_reason, ahead_ns (the card's clock minus the node's),
 *                          begin_ago_ns (the log is opened that long ago), drop, put, hang_seconds, fail_class,
 *                          short_ring (records it has room for), foreign_pids (the reader is in a PID namespace
 *                          of its own; without it, it is in the node's, wherever the tests run)
 *   records              the log, 32 bytes each, with stamps of the card's clock; played as their time comes
 *   calls                gets a line for every call
 *   bound                is locked while a log is bound
 *
 * A call that would harm a real kernel ends the process, loudly. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FREE = 0x29, CONTROL = 0x2A, ALLOC = 0x2B, MAP = 0x4E, CARDS = 200, VERSION = 210 };
enum { NONE, CONTROL_NODE, CARD_NODE };
enum { MOST_FDS = 4096, MOST_MEMORIES = 8, RECORD = 32 };

struct memory { uint32_t handle; uint64_t size; int fd; unsigned char *at; };

static char kinds[MOST_FDS];
static uint32_t mapped[MOST_FDS];
static struct memory memories[MOST_MEMORIES];
static int memory_count, is_bound, is_on, times_asked, log_fd = -1, client_fd = -1, bound_fd = -1;
static uint32_t header_handle, records_handle, record_count, next_get;
static off_t played;
static uint64_t opened_at;

static const char *folder(void) { const char *found = getenv("FAKESWITCHES"); return found ? found : "/nonexistent"; }

static int real_open(const char *path, int flags, int mode) {
    static int (*real)(const char *, int, ...);
    if (!real) real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
    return real(path, flags, mode);
}

static void note(const char *form, ...) {
    char line[200], path[512];
    va_list rest;
    va_start(rest, form);
    int size = vsnprintf(line, sizeof line - 1, form, rest);
    va_end(rest);
    line[size++] = '\n';
    if (log_fd < 0) {
        snprintf(path, sizeof path, "%s/calls", folder());
        log_fd = real_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    }
    if (write(log_fd, line, (size_t)size) < 0) abort();
}

static void hazard(const char *what) {
    note("HAZARD %s", what);
    fprintf(stderr, "fakeswitches: this would harm a real kernel: %s\n", what);
    abort();
}

static int64_t scripted(const char *key, int64_t otherwise) {
    char path[512], name[64];
    long long value;
    int64_t found = otherwise;
    snprintf(path, sizeof path, "%s/script", folder());
    FILE *file = fopen(path, "re");
    if (!file) return otherwise;
    while (fscanf(file, "%63s %lli", name, &value) == 2)
        if (!strcmp(name, key)) found = value;
    fclose(file);
    return found;
}

static uint64_t gpu_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + (uint64_t)scripted("ahead_ns", 0);
}

static struct memory *memory_of(uint32_t handle) {
    for (int i = 0; i < memory_count; i++)
        if (memories[i].handle == handle) return &memories[i];
    return NULL;
}

static void play(uint64_t now) {
    struct memory *header = memory_of(header_handle), *ring = memory_of(records_handle);
    char path[512];
    unsigned char record[RECORD];
    if (!is_bound || !is_on || !header || !ring) return;
    uint32_t *indices = (uint32_t *)header->at;
    uint64_t *counts = (uint64_t *)header->at;
    uint64_t room = (uint64_t)scripted("short_ring", record_count);
    snprintf(path, sizeof path, "%s/records", folder());
    int fd = real_open(path, O_RDONLY | O_CLOEXEC, 0);
    while (fd >= 0 && pread(fd, record, RECORD, played) == RECORD) {
        uint64_t stamp;
        memcpy(&stamp, record + 24, 8);
        if (stamp > now) break;
        played += RECORD;
        uint32_t put = indices[1], used = (put + record_count - indices[0]) % record_count;
        if (used + 1 >= room) { counts[2]++; continue; }
        memcpy(ring->at + (size_t)put * RECORD, record, RECORD);
        indices[1] = (put + 1) % record_count;
        counts[1] = used + 1;
    }
    if (fd >= 0) close(fd);
    counts[2] += (uint64_t)scripted("drop", 0);
    int64_t put = scripted("put", -1);
    if (put >= 0) indices[1] = (uint32_t)put;
}

/* What happened before the log was opened is not in it. */
static void skip_earlier(void) {
    char path[512];
    unsigned char record[RECORD];
    uint64_t stamp;
    snprintf(path, sizeof path, "%s/records", folder());
    int fd = real_open(path, O_RDONLY | O_CLOEXEC, 0);
    while (fd >= 0 && pread(fd, record, RECORD, played) == RECORD) {
        memcpy(&stamp, record + 24, 8);
        if (stamp && stamp >= opened_at) break;
        played += RECORD;
    }
    if (fd >= 0) close(fd);
}

static uint32_t allocate(uint32_t parent, uint32_t *handle, uint32_t class, const unsigned char *parameters) {
    uint32_t record_size, subdevice;
    uint64_t notification;
    note("allocate %x", class);
    if (scripted("fail_class", 0) == class) return 0x56;
    if (class == 0x41) { *handle = 0xC1D00001; return 0; }
    if (!parent || !*handle || !parameters) hazard("an object without parent, handle or parameters");
    if (class == 0x90CE) {
        struct memory *new = &memories[memory_count++];
        if (memory_count >= MOST_MEMORIES) hazard("too much memory");
        new->handle = *handle;
        memcpy(&new->size, parameters + 64, 8);
        if (new->size > 4u << 20) return 0x51;
        new->fd = memfd_create("fakeswitches", MFD_CLOEXEC);
        if (ftruncate(new->fd, (off_t)new->size)) abort();
        new->at = mmap(NULL, new->size, PROT_READ | PROT_WRITE, MAP_SHARED, new->fd, 0);
    } else if (class == 0x90CD) {
        memcpy(&record_size, parameters + 16, 4);
        memcpy(&record_count, parameters + 20, 4);
        memcpy(&notification, parameters + 40, 8);
        memcpy(&subdevice, parameters + 52, 4);
        memcpy(&header_handle, parameters + 60, 4);
        memcpy(&records_handle, parameters + 64, 4);
        if (record_size < RECORD) hazard("records of less than 32 bytes");
        if (!subdevice) hazard("a subdevice of 0");
        if (notification) hazard("a notification");
        struct memory *ring = memory_of(records_handle);
        if (!memory_of(header_handle) || !ring) hazard("an event buffer without memory");
        if (ring->size < (uint64_t)record_size * record_count) hazard("a buffer larger than its memory");
    } else if (class != 0x80 && class != 0x2080) {
        hazard("an unknown class");
    }
    return 0;
}

static uint32_t bind_log(unsigned char *parameters) {
    char path[512];
    uint32_t status = (uint32_t)scripted("bind_status", 0), reason = (uint32_t)scripted("bind_reason", 0), size;
    memcpy(&size, parameters + 4, 4);
    if (size != RECORD) hazard("a bind of another record size");
    if (status) { memcpy(parameters + 20, &reason, 4); return status; }
    snprintf(path, sizeof path, "%s/bound", folder());
    bound_fd = real_open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (flock(bound_fd, LOCK_EX | LOCK_NB)) hazard("a second reader");
    is_bound = 1;
    return 0;
}

static uint32_t control(uint32_t command, unsigned char *parameters) {
    note("control %x", command);
    if (command == 0x205) { uint32_t instance = 3; memcpy(parameters + 8, &instance, 4); return 0; }
    if (command == 0x20801238) return bind_log(parameters);
    if (command == 0x90CD0101) {
        is_on = parameters[0];
        if (is_on) skip_earlier();
        return 0;
    }
    if (command == 0x90CD0102) {
        struct memory *header = memory_of(header_handle);
        memcpy(&next_get, parameters, 4);
        ((uint32_t *)header->at)[0] = next_get;
        ((uint64_t *)header->at)[2] = 0;
        return 0;
    }
    if (command == 0x20800403) {
        sleep((unsigned)scripted("hang_seconds", 0));
        uint64_t now = gpu_time();
        if (times_asked++ == 0) opened_at = now -= (uint64_t)scripted("begin_ago_ns", 0);
        else play(now);
        memcpy(parameters, &now, 8);
        return 0;
    }
    hazard(command == 0x90CD0104 ? "a flush, which slows tenants down" : "an unknown command");
    return 0;
}

static int call(unsigned long request, unsigned char *at) {
    unsigned number = request & 0xFF, size = (request >> 16) & 0x3FFF;
    uint64_t address;
    uint32_t status = 0, first, second;
    if (((request >> 8) & 0xFF) != 'F') hazard("an ioctl of another driver");
    if (number == VERSION && size == 72) {
        note("version");
        sprintf((char *)at + 8, "%lld.159.04", (long long)scripted("version_branch", 580));
    } else if (number == CARDS && size == 32 * 72) {
        note("cards");
        for (uint32_t i = 0; i < 2; i++) {
            uint32_t id = 0x100 * (i + 1);
            at[i * 72] = 1;
            memcpy(at + i * 72 + 16, &id, 4);
            memcpy(at + i * 72 + 56, &i, 4);
        }
    } else if (number == ALLOC && size == 32) {
        memcpy(&address, at + 16, 8);
        memcpy(&first, at + 4, 4);
        memcpy(&second, at + 12, 4);
        status = allocate(first, (uint32_t *)(void *)(at + 8), second, (unsigned char *)(uintptr_t)address);
        memcpy(at + 28, &status, 4);
    } else if (number == CONTROL && size == 32) {
        memcpy(&address, at + 16, 8);
        memcpy(&first, at + 8, 4);
        status = control(first, (unsigned char *)(uintptr_t)address);
        memcpy(at + 28, &status, 4);
    } else if (number == MAP && size == 56) {
        int32_t fd;
        note("map");
        memcpy(&first, at + 8, 4);
        memcpy(&fd, at + 48, 4);
        memcpy(&second, at + 44, 4);
        if (second != 1) hazard("a mapping that can be written");
        if (!memory_of(first) || fd < 0 || fd >= MOST_FDS || kinds[fd] != CONTROL_NODE) hazard("a mapping of nothing");
        mapped[fd] = first;
        memcpy(at + 40, &status, 4);
    } else if (number == FREE && size == 16) {
        note("free");
        memcpy(at + 12, &status, 4);
    } else {
        hazard("an unknown ioctl");
    }
    return 0;
}

static int opened(const char *path, int flags, int mode) {
    char other[512];
    if (strncmp(path, "/dev/nvidia", 11)) return real_open(path, flags, mode);
    note("open %s", path + 5);
    snprintf(other, sizeof other, "%s/%s", folder(), path + 5);
    int fd = real_open(other, flags, mode);
    if (fd >= 0 && fd < MOST_FDS) kinds[fd] = strcmp(path, "/dev/nvidiactl") ? CARD_NODE : CONTROL_NODE;
    return fd;
}

static int mode_of(int flags, va_list rest) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0; }

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int mode = mode_of(flags, rest);
    va_end(rest);
    return opened(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int mode = mode_of(flags, rest);
    va_end(rest);
    return opened(path, flags, mode);
}

static int with_namespace(int status, const char *path, struct stat64 *found) {
    if (!status && !strcmp(path, "/proc/self/ns/pid")) found->st_ino = scripted("foreign_pids", 0) ? 1 : 0xEFFFFFFC;
    return status;
}

int stat64(const char *path, struct stat64 *found) {
    static int (*real)(const char *, struct stat64 *);
    if (!real) real = (int (*)(const char *, struct stat64 *))dlsym(RTLD_NEXT, "stat64");
    return with_namespace(real(path, found), path, found);
}

int stat(const char *path, struct stat *found) { return stat64(path, (struct stat64 *)found); }

/* The driver frees everything with the node through which it was allocated. */
static void free_client(int (*real)(int)) {
    for (int i = 0; i < memory_count; i++) {
        munmap(memories[i].at, memories[i].size);
        real(memories[i].fd);
    }
    if (bound_fd >= 0) real(bound_fd);
    memory_count = is_bound = is_on = times_asked = 0;
    client_fd = bound_fd = -1;
}

int close(int fd) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "close");
    if (fd >= 0 && fd == client_fd) free_client(real);
    if (fd >= 0 && fd < MOST_FDS) { kinds[fd] = NONE; mapped[fd] = 0; }
    return real(fd);
}

int ioctl(int fd, unsigned long request, ...) {
    static int (*real)(int, unsigned long, ...);
    va_list rest;
    va_start(rest, request);
    void *at = va_arg(rest, void *);
    va_end(rest);
    if (!real) real = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
    if (fd >= 0 && fd < MOST_FDS && kinds[fd] == CONTROL_NODE) {
        if ((request & 0xFF) == ALLOC && client_fd < 0) client_fd = fd;
        return call(request, at);
    }
    if (fd >= 0 && fd < MOST_FDS && kinds[fd] == CARD_NODE) hazard("a call to the card itself");
    return real(fd, request, at);
}

static void *mapping(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    static void *(*real)(void *, size_t, int, int, int, off_t);
    if (!real) real = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap64");
    if (fd >= 0 && fd < MOST_FDS && kinds[fd] != NONE) {
        struct memory *found = memory_of(mapped[fd]);
        note("mmap");
        if (!found || size > found->size) hazard("a mapping that was not granted");
        if (protection != PROT_READ) hazard("a mapping that can be written");
        fd = found->fd;
    }
    return real(at, size, protection, flags, fd, offset);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    return mapping(at, size, protection, flags, fd, offset);
}

void *mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    return mapping(at, size, protection, flags, fd, offset);
}
