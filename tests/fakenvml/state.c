/* The script now in force, and the identities that handles point to. */
#define _GNU_SOURCE
#include "fakenvml.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A script's writer waits longer than this before it goes on, so that its next call meets the new script. */
#define CHECK_SECONDS 0.001

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static State *current;
static Slot *slots;
static char *path;
static double loaded, checked;
static struct stat seen;

double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

uint64_t realtime_micros(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void state_lock(void) { pthread_mutex_lock(&lock); }

void state_unlock(void) { pthread_mutex_unlock(&lock); }

Slot *slot_locked(const char *uuid) {
    for (Slot *slot = slots; slot; slot = slot->next)
        if (strcmp(slot->uuid, uuid) == 0) return slot;
    Slot *slot = calloc(1, sizeof *slot);
    snprintf(slot->uuid, sizeof slot->uuid, "%s", uuid);
    slot->next = slots;
    slots = slot;
    return slot;
}

/* Where a handle's device stands in this script; `mig` is ANY for a whole card. */
bool slot_place(const State *state, const Slot *slot, int *gpu, int *mig) {
    for (size_t i = 0; slot && i < state->gpu_count; i++) {
        *gpu = (int)i;
        *mig = ANY;
        if (state->gpus[i].slot == slot) return true;
        for (*mig = 0; *mig < MAX_MIGS; ++*mig)
            if (state->gpus[i].migs[*mig].present && state->gpus[i].migs[*mig].slot == slot) return true;
    }
    *gpu = *mig = ANY;
    return false;
}

static void release_locked(State *state) {
    if (state && --state->references == 0) script_free(state);
}

static bool same_file(const struct stat *x, const struct stat *y) {
    return x->st_ino == y->st_ino && x->st_size == y->st_size && x->st_mtim.tv_sec == y->st_mtim.tv_sec &&
           x->st_mtim.tv_nsec == y->st_mtim.tv_nsec;
}

/* The whole file, and the identity of exactly the file that was read. */
static char *read_script(struct stat *identity) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return NULL;
    char *text = NULL;
    if (fstat(fd, identity) == 0 && (text = malloc((size_t)identity->st_size + 1)) != NULL) {
        ssize_t length = read(fd, text, (size_t)identity->st_size);
        text[length < 0 ? 0 : length] = '\0';
    }
    close(fd);
    return text;
}

/* An unchanged fault line goes on counting. */
static void carry_fault_counts(State *next) {
    for (size_t i = 0; current && i < next->fault_count; i++)
        for (size_t j = 0; j < current->fault_count; j++)
            if (strcmp(next->faults[i].text, current->faults[j].text) == 0)
                next->faults[i].used = current->faults[j].used;
}

/* Events of the first script have happened before anyone listened. */
static void skip_old_events(const State *first) {
    for (size_t i = 0; i < first->event_count; i++) {
        Slot *slot = first->gpus[first->events[i].gpu].slot;
        if (first->events[i].sequence > slot->delivered) slot->delivered = first->events[i].sequence;
    }
}

static void reload_locked(void) {
    struct stat identity;
    char *text = read_script(&identity);
    if (text == NULL) return;
    seen = identity;
    State *next = script_parse(text, loaded);
    free(text);
    if (next == NULL) return;
    carry_fault_counts(next);
    if (current == NULL) skip_old_events(next);
    next->references = 1;
    release_locked(current);
    current = next;
}

/* NULL until a script could be read. A script that cannot be read leaves the one before in force. */
State *state_refresh_locked(void) {
    double now = seconds_now();
    struct stat identity;
    if (path == NULL || now - checked < CHECK_SECONDS) return current;
    checked = now;
    if (stat(path, &identity) == 0 && !same_file(&identity, &seen)) reload_locked();
    return current;
}

State *state_acquire(void) {
    state_lock();
    State *state = state_refresh_locked();
    if (state) state->references++;
    state_unlock();
    return state;
}

void state_release(State *state) {
    state_lock();
    release_locked(state);
    state_unlock();
}

__attribute__((constructor)) static void load(void) {
    const char *named = getenv("FAKENVML_SCRIPT");
    loaded = seconds_now();
    if (named == NULL) {
        fputs("fakenvml: FAKENVML_SCRIPT names no script\n", stderr);
        return;
    }
    path = strdup(named);
    state_lock();
    state_refresh_locked();
    state_unlock();
    if (current == NULL) fprintf(stderr, "fakenvml: no script could be read from %s\n", path);
}
