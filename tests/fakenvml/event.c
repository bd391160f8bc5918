/* XID events. Each line of the script is delivered once, to one waiter. */
#include "fakenvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define POLL_SECONDS 0.01
#define XID_CRITICAL 8u
#define SUPPORTED_TYPES 0x1FFu

typedef struct {
    const Slot *device;
    uint64_t types;
} Registration;

typedef struct {
    Registration registrations[MAX_GPUS];
    size_t count;
    int fd;
} EventSet;

typedef struct {
    Slot *device;
    uint64_t type, data;
    unsigned gi, ci;
} EventData;

static atomic_int live_sets;

/* Event sets created and not freed. */
int fakenvml_live_event_sets(void) { return atomic_load(&live_sets); }

int nvmlDeviceGetSupportedEventTypes(const Slot *device, uint64_t *out) {
    CALL(nvmlDeviceGetSupportedEventTypes, device, ON_GPU);
    *out = setting(&call, K_event_types, 0, SUPPORTED_TYPES);
    return OK;
}

/* A set holds a descriptor of the first card, which the real library forgets to close on shutdown. */
int nvmlEventSetCreate(EventSet **out) {
    CALL(nvmlEventSetCreate, NULL, NO_DEVICE);
    EventSet *set = calloc(1, sizeof *set);
    set->fd = open_device("nvidia0");
    atomic_fetch_add(&live_sets, 1);
    *out = set;
    return OK;
}

int nvmlEventSetFree(EventSet *set) {
    CALL(nvmlEventSetFree, NULL, NO_DEVICE);
    if (set == NULL) return INVALID_ARGUMENT;
    if (set->fd >= 0) close(set->fd);
    free(set);
    atomic_fetch_sub(&live_sets, 1);
    return OK;
}

static int register_locked(EventSet *set, const Slot *device, uint64_t types) {
    size_t i = 0;
    while (i < set->count && set->registrations[i].device != device) i++;
    if (i == MAX_GPUS) return UNKNOWN_ERROR;
    if (i == set->count) set->registrations[set->count++] = (Registration){.device = device};
    set->registrations[i].types |= types;
    return OK;
}

int nvmlDeviceRegisterEvents(const Slot *device, uint64_t types, EventSet *set) {
    CALL(nvmlDeviceRegisterEvents, device, ON_GPU);
    uint64_t supported = setting(&call, K_event_types, 0, SUPPORTED_TYPES);
    if (set == NULL) return INVALID_ARGUMENT;
    if (types & ~supported) return NOT_SUPPORTED;
    state_lock();
    int code = register_locked(set, device, types);
    state_unlock();
    return code;
}

static bool wants_locked(const EventSet *set, const Slot *device) {
    for (size_t i = 0; i < set->count; i++)
        if (set->registrations[i].device == device) return set->registrations[i].types & XID_CRITICAL;
    return false;
}

/* The oldest event that this set waits for and nobody has had. */
static const Event *pending_locked(const State *state, const EventSet *set) {
    const Event *oldest = NULL;
    for (size_t i = 0; state && i < state->event_count; i++) {
        const Event *event = &state->events[i];
        const Slot *slot = state->gpus[event->gpu].slot;
        if (event->sequence > slot->delivered && wants_locked(set, slot) &&
            (oldest == NULL || event->sequence < oldest->sequence))
            oldest = event;
    }
    return oldest;
}

static bool deliver_locked(EventSet *set, EventData *out) {
    State *state = state_refresh_locked();
    const Event *event = pending_locked(state, set);
    if (event == NULL) return false;
    Slot *slot = state->gpus[event->gpu].slot;
    slot->delivered = event->sequence;
    *out = (EventData){slot, XID_CRITICAL, event->xid, event->gi, event->ci};
    return true;
}

int nvmlEventSetWait_v2(EventSet *set, EventData *out, unsigned timeout_ms) {
    CALL(nvmlEventSetWait_v2, NULL, NO_DEVICE);
    double deadline = call.entered + timeout_ms / 1e3;
    if (set == NULL) return INVALID_ARGUMENT;
    for (;;) {
        state_lock();
        bool delivered = deliver_locked(set, out);
        state_unlock();
        double now = seconds_now();
        if (delivered) return OK;
        if (now >= deadline) return TIMEOUT;
        sleep_until(now + POLL_SECONDS < deadline ? now + POLL_SECONDS : deadline);
    }
}
