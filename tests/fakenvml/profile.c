/* MIG: the profiles that a card offers, and of which an instance is. They are those of an H200. */
#include "fakenvml.h"

#include <string.h>

#define MEMORY_SLICES 8u

typedef struct {
    const char *name;
    unsigned which, id; /* the number to ask by, and the profile's own */
    unsigned slices, memory_slices, multiprocessors;
    unsigned places, step; /* it may start at 0, step, 2 step and so on */
} Profile;

static const Profile profiles[] = {
    {"1g.18gb", 0, 19, 1, 1, 16, 7, 1}, {"1g.18gb+me", 7, 20, 1, 1, 16, 7, 1}, {"1g.35gb", 9, 15, 1, 2, 26, 4, 2},
    {"2g.35gb", 1, 14, 2, 2, 32, 3, 2}, {"3g.71gb", 2, 9, 3, 4, 60, 2, 4},     {"4g.71gb", 3, 5, 4, 4, 64, 1, 4},
    {"7g.141gb", 4, 0, 7, 8, 132, 1, 8},
};
static const unsigned compute_slices[] = {1, 2, 3, 4, 7}; /* by the number to ask by */

typedef struct {
    unsigned id, p2p, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
    uint64_t memory_mib;
} GpuInstanceProfile;

typedef struct {
    unsigned id, slices, instances, multiprocessors, engines[5];
} ComputeInstanceProfile;

typedef struct {
    unsigned start, size;
} Placement;

typedef struct {
    const Slot *device, *gpu_instance;
    unsigned id, profile;
    Placement placement;
} ComputeInstanceInfo;

static const Profile *profile_of(const Mig *mig) {
    for (size_t i = 0; i < sizeof profiles / sizeof *profiles; i++)
        if (strcmp(profiles[i].name, mig->profile) == 0) return &profiles[i];
    return NULL;
}

unsigned profile_id(const Mig *mig) {
    const Profile *profile = profile_of(mig);
    return profile ? profile->id : NONE_U32;
}

int nvmlDeviceGetGpuInstanceProfileInfo(const Slot *device, unsigned which, GpuInstanceProfile *out) {
    CALL(nvmlDeviceGetGpuInstanceProfileInfo, device, ON_GPU);
    uint64_t memory = setting(&call, K_memory_total, 0, 0);
    for (size_t i = 0; i < sizeof profiles / sizeof *profiles; i++) {
        const Profile *each = &profiles[i];
        if (each->which != which) continue;
        *out = (GpuInstanceProfile){
            .id = each->id,
            .slices = each->slices,
            .instances = each->places,
            .multiprocessors = each->multiprocessors,
            .copy_engines = each->slices,
            .decoders = each->slices,
            .memory_mib = memory * each->memory_slices / MEMORY_SLICES >> 20,
        };
        return OK;
    }
    return NOT_SUPPORTED;
}

/* Without room for the answer, only how many there are. */
int nvmlDeviceGetGpuInstancePossiblePlacements_v2(const Slot *device, unsigned id, Placement *out, unsigned *count) {
    CALL(nvmlDeviceGetGpuInstancePossiblePlacements_v2, device, ON_GPU);
    for (size_t i = 0; i < sizeof profiles / sizeof *profiles; i++) {
        const Profile *each = &profiles[i];
        if (each->id != id) continue;
        if (out && *count < each->places) return INSUFFICIENT_SIZE;
        for (unsigned place = 0; out && place < each->places; place++)
            out[place] = (Placement){place * each->step, each->memory_slices};
        *count = each->places;
        return OK;
    }
    return NOT_SUPPORTED;
}

int nvmlDeviceGetGpuInstancePossiblePlacements(const Slot *device, unsigned id, Placement *out, unsigned *count) {
    return nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, id, out, count);
}

int nvmlGpuInstanceGetComputeInstanceProfileInfo(const Slot *instance, unsigned which, unsigned engines,
                                                 ComputeInstanceProfile *out) {
    CALL(nvmlGpuInstanceGetComputeInstanceProfileInfo, instance, ON_MIG);
    const Profile *whole = profile_of(call.mig);
    if (engines != 0 || which >= sizeof compute_slices / sizeof *compute_slices) return NOT_SUPPORTED;
    if (whole == NULL || compute_slices[which] > whole->slices) return NOT_SUPPORTED;
    unsigned slices = compute_slices[which];
    *out = (ComputeInstanceProfile){
        .id = which,
        .slices = slices,
        .instances = whole->slices / slices,
        .multiprocessors = whole->multiprocessors * slices / whole->slices,
    };
    return OK;
}

int nvmlGpuInstanceGetComputeInstanceById(const Slot *instance, unsigned id, Slot **out) {
    CALL(nvmlGpuInstanceGetComputeInstanceById, instance, ON_MIG);
    for (int i = 0; i < MAX_MIGS; i++) {
        const Mig *each = &call.gpu->migs[i];
        if (!each->present || each->gi != call.mig->gi || each->ci != id) continue;
        *out = each->slot;
        return OK;
    }
    return NOT_FOUND;
}

int nvmlComputeInstanceGetInfo_v2(const Slot *instance, ComputeInstanceInfo *out) {
    CALL(nvmlComputeInstanceGetInfo_v2, instance, ON_MIG);
    unsigned slices = (unsigned)setting(&call, K_slices_compute, 0, 1), which = 0;
    while (which < sizeof compute_slices / sizeof *compute_slices && compute_slices[which] != slices) which++;
    const Mig *parent = gpu_instance(call.gpu, call.mig->gi);
    *out = (ComputeInstanceInfo){call.gpu->slot, parent->slot, call.mig->ci, which, {0, slices}};
    return OK;
}
