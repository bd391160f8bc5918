/* MIG: a card's instances, and what only an instance can say. */
#include "fakenvml.h"

typedef struct {
    unsigned multiprocessors, copy_engines, decoders, encoders, jpegs, ofas, gpu_slices, compute_slices;
    uint64_t memory_mib;
} Attributes;

typedef struct {
    const Slot *device;
    unsigned id, profile;
    struct {
        unsigned start, size;
    } placement;
} GpuInstanceInfo;

bool in_mig_mode(const Call *call) {
    const Entry *mode = table_find(&call->gpu->values, K_mig_mode, 0, 0);
    return mode && value_at(&mode->value, call->elapsed) >= 1;
}

/* A GPU instance is known by its first compute instance. */
const Mig *gpu_instance(const Gpu *gpu, unsigned gi) {
    for (int i = 0; i < MAX_MIGS; i++)
        if (gpu->migs[i].present && gpu->migs[i].gi == gi) return &gpu->migs[i];
    return NULL;
}

static unsigned instance_limit(const Call *call) {
    return in_mig_mode(call) ? (unsigned)setting(call, K_mig_max, 0, 7) : 0;
}

int nvmlDeviceGetMigMode(const Slot *device, unsigned *now, unsigned *pending) {
    CALL(nvmlDeviceGetMigMode, device, ON_GPU);
    Reading mode = reading(&call, K_mig_mode, 0, 0);
    int code = put_u32(mode, now);
    if (code == OK) *pending = (unsigned)setting(&call, K_mig_pending, 0, *now);
    return code;
}

int nvmlDeviceGetMaxMigDeviceCount(const Slot *device, unsigned *count) {
    CALL(nvmlDeviceGetMaxMigDeviceCount, device, ON_GPU);
    *count = call.sentinel ? NONE_U32 : instance_limit(&call);
    return OK;
}

/* Indexes without an instance are holes: NOT_FOUND, and more may follow. */
int nvmlDeviceGetMigDeviceHandleByIndex(const Slot *device, unsigned index, Slot **out) {
    CALL(nvmlDeviceGetMigDeviceHandleByIndex, device, ON_GPU);
    if (!in_mig_mode(&call)) return NOT_SUPPORTED;
    if (index >= instance_limit(&call)) return INVALID_ARGUMENT;
    if (index >= MAX_MIGS || !call.gpu->migs[index].present) return NOT_FOUND;
    *out = call.gpu->migs[index].slot;
    return OK;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(const Slot *device, Slot **out) {
    CALL(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, device, ON_MIG);
    *out = call.gpu->slot;
    return OK;
}

int nvmlDeviceIsMigDeviceHandle(const Slot *device, unsigned *out) {
    CALL(nvmlDeviceIsMigDeviceHandle, device, ON_ANY);
    *out = call.mig != NULL;
    return OK;
}

int nvmlDeviceGetGpuInstanceId(const Slot *device, unsigned *out) {
    CALL(nvmlDeviceGetGpuInstanceId, device, ON_MIG);
    *out = call.sentinel ? NONE_U32 : call.mig->gi;
    return OK;
}

int nvmlDeviceGetComputeInstanceId(const Slot *device, unsigned *out) {
    CALL(nvmlDeviceGetComputeInstanceId, device, ON_MIG);
    *out = call.sentinel ? NONE_U32 : call.mig->ci;
    return OK;
}

int nvmlDeviceGetAttributes_v2(const Slot *device, Attributes *out) {
    CALL(nvmlDeviceGetAttributes_v2, device, ON_MIG);
    *out = (Attributes){
        .multiprocessors = (unsigned)setting(&call, K_multiprocessors, 0, 0),
        .copy_engines = (unsigned)setting(&call, K_copy_engines, 0, 1),
        .decoders = (unsigned)setting(&call, K_decoders, 0, 1),
        .encoders = (unsigned)setting(&call, K_encoders, 0, 0),
        .jpegs = (unsigned)setting(&call, K_jpegs, 0, 1),
        .ofas = (unsigned)setting(&call, K_ofas, 0, 0),
        .gpu_slices = (unsigned)setting(&call, K_slices_gpu, 0, 1),
        .compute_slices = (unsigned)setting(&call, K_slices_compute, 0, 1),
        .memory_mib = setting(&call, K_memory_total, 0, 0) >> 20,
    };
    if (call.sentinel) out->multiprocessors = NONE_U32;
    return OK;
}

int nvmlDeviceGetGpuInstanceById(const Slot *device, unsigned id, Slot **out) {
    CALL(nvmlDeviceGetGpuInstanceById, device, ON_GPU);
    if (!in_mig_mode(&call)) return NOT_SUPPORTED;
    const Mig *found = gpu_instance(call.gpu, id);
    if (found == NULL) return NOT_FOUND;
    *out = found->slot;
    return OK;
}

int nvmlGpuInstanceGetInfo(const Slot *instance, GpuInstanceInfo *out) {
    CALL(nvmlGpuInstanceGetInfo, instance, ON_MIG);
    *out = (GpuInstanceInfo){.device = call.gpu->slot, .id = call.mig->gi, .profile = profile_id(call.mig)};
    out->placement.size = (unsigned)setting(&call, K_slices_gpu, 0, 1);
    return put_u32(reading(&call, K_placement, 0, 0), &out->placement.start);
}
