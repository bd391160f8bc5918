/* What every call goes through: counting, the log, delays and faults. */
#define _GNU_SOURCE
#include "fakenvml.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HANG_POLL_SECONDS 0.05
#define SHORTEST_SLEEP_SECONDS 20e-6 /* waking a thread takes about this long */

static int log_fd = -1;

__attribute__((constructor)) static void open_log(void) {
    const char *named = getenv("FAKENVML_LOG");
    if (named) log_fd = open(named, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

/* Number of calls of an NVML function so far, whether they were refused or not. */
unsigned long fakenvml_calls(const char *name) {
    for (Site *site = __start_sites; site < __stop_sites; site++)
        if (strcmp(site->name, name) == 0) return atomic_load(&site->calls);
    return 0;
}

/* One line: microseconds of CLOCK_MONOTONIC, thread, GPU or GPU:instance or -, function. */
static void log_call(const Call *call, const Site *site, int gpu, int mig) {
    char device[32] = "-", line[LINE_SIZE];
    if (gpu != ANY) snprintf(device, sizeof device, mig == ANY ? "%d" : "%d:%d", gpu, mig);
    int length = snprintf(line, sizeof line, "%.0f %ld %s %s\n", call->entered * 1e6, syscall(SYS_gettid), device,
                          site->name);
    if (write(log_fd, line, (size_t)length) < 0) log_fd = -1;
}

void sleep_until(double monotonic_seconds) {
    static _Thread_local bool precise;
    if (monotonic_seconds - seconds_now() < SHORTEST_SLEEP_SECONDS) {
        while (seconds_now() < monotonic_seconds) {
        }
        return;
    }
    struct timespec until = {.tv_sec = (time_t)monotonic_seconds};
    until.tv_nsec = (long)((monotonic_seconds - (double)until.tv_sec) * 1e9);
    if (!precise) {
        /* The kernel's default slack of 50 us is more than most calls take. */
        prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
        precise = true;
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) {
    }
}

static bool strikes(const Fault *fault, const Site *site, int gpu, int mig) {
    return (fault->site == NULL || fault->site == site) && (fault->gpu == ANY || fault->gpu == gpu) &&
           (fault->mig == ANY || fault->mig == mig) && (fault->times == 0 || fault->used < fault->times);
}

/* The first line that matches is the one that strikes. */
static Fault take_fault_locked(State *state, const Site *site, int gpu, int mig) {
    for (size_t i = 0; i < state->fault_count; i++)
        if (strikes(&state->faults[i], site, gpu, mig)) {
            state->faults[i].used++;
            return state->faults[i];
        }
    return (Fault){.kind = FAULT_NONE};
}

static bool still_scripted(const char *text) {
    bool found = false;
    state_lock();
    State *state = state_refresh_locked();
    for (size_t i = 0; state && i < state->fault_count; i++) found |= strcmp(state->faults[i].text, text) == 0;
    state_unlock();
    return found;
}

static void crash(void) {
    /* Volatile, or the compiler would see the bad address and trap with another signal. */
    volatile uintptr_t nowhere = 8;
    *(volatile int *)nowhere = 1;
}

/* What the script holds against this call, decided under the lock; it is suffered without. */
static Fault enter(Call *call, Site *site, const Slot *device, double *delay) {
    Fault fault = {.kind = FAULT_NONE};
    int gpu = ANY, mig = ANY;
    state_lock();
    State *state = state_refresh_locked();
    if (state) {
        slot_place(state, device, &gpu, &mig);
        *delay = state->delays[site - __start_sites];
        fault = take_fault_locked(state, site, gpu, mig);
    }
    state_unlock();
    if (log_fd >= 0) log_call(call, site, gpu, mig);
    return fault;
}

static void suffer(const Call *call, const Fault *fault, double delay) {
    if (fault->kind == FAULT_CRASH) crash();
    if (fault->kind == FAULT_HANG)
        while (still_scripted(fault->text)) sleep_until(seconds_now() + HANG_POLL_SECONDS);
    if (fault->kind == FAULT_DELAY) delay += fault->argument;
    if (delay > 0) sleep_until(call->entered + delay / 1e6);
}

static int resolve(Call *call, const Slot *device, unsigned works) {
    int gpu, mig;
    if (device == NULL) return INVALID_ARGUMENT;
    if (!slot_place(call->state, device, &gpu, &mig))
        return strncmp(device->uuid, "MIG-", 4) == 0 ? INVALID_ARGUMENT : GPU_NOT_FOUND;
    call->gpu = &call->state->gpus[gpu];
    if (mig == ANY) return works & ON_GPU ? OK : NOT_SUPPORTED;
    call->mig = &call->gpu->migs[mig];
    if (!in_mig_mode(call)) return INVALID_ARGUMENT;
    return works & ON_MIG ? OK : NOT_SUPPORTED;
}

int call_begin(Call *call, Site *site, const Slot *device, unsigned works) {
    double delay = 0;
    atomic_fetch_add(&site->calls, 1);
    call->entered = seconds_now();
    Fault fault = enter(call, site, device, &delay);
    suffer(call, &fault, delay);
    if (fault.kind == FAULT_RETURN) return (int)fault.argument;
    call->sentinel = fault.kind == FAULT_SENTINEL;
    call->state = state_acquire();
    if (call->state == NULL) return UNKNOWN_ERROR;
    call->elapsed = seconds_now() - call->state->epoch;
    state_lock();
    bool ready = is_initialised_locked();
    state_unlock();
    if (!ready && !(works & BEFORE_INIT)) return UNINITIALIZED;
    return works & ON_ANY ? resolve(call, device, works) : OK;
}

void call_end(Call *call) {
    if (call->state) state_release(call->state);
}
