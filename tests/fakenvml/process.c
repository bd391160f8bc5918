/* Process lists and the driver's process utilisation. */
#include "fakenvml.h"

/* The driver takes one sample of who ran every 200 ms. */
#define STAMP_MICROS 200000u
#define GPU_UTILISATION 1u
#define UTILISATION_INFO_V1 0x01000018u

typedef struct {
    unsigned pid;
    uint64_t memory;
    unsigned gi, ci;
} ProcessInfo;

/* The only form before R460. */
typedef struct {
    unsigned pid;
    uint64_t memory;
} FirstProcessInfo;

typedef struct {
    unsigned pid;
    uint64_t stamp;
    unsigned sm, mem, enc, dec;
} Sample;

typedef struct {
    uint64_t stamp, busy;
} Window;

typedef struct {
    uint64_t stamp;
    unsigned pid, sm, mem, enc, dec, jpg, ofa;
} SampleInfo;

typedef struct {
    unsigned version, count;
    uint64_t last_seen;
    SampleInfo *samples;
} SamplesInfo;

static bool is_listed(const Call *call, const Process *process, unsigned kind) {
    if (!(process->kinds & kind)) return false;
    return call->mig == NULL || (process->gi == call->mig->gi && process->ci == call->mig->ci);
}

static ProcessInfo info_of(const Call *call, const Process *process) {
    bool unknown = call->sentinel || process->memory.kind == UNKNOWN, mig = in_mig_mode(call);
    return (ProcessInfo){
        .pid = process->pid,
        .memory = unknown ? NONE_U64 : whole(value_at(&process->memory, call->elapsed)),
        .gi = mig ? process->gi : NONE_U32,
        .ci = mig ? process->ci : NONE_U32,
    };
}

/* At most one of `out` and `first` is written; both NULL asks for the size. */
static int list(const Call *call, unsigned kind, unsigned *count, ProcessInfo *out, FirstProcessInfo *first) {
    unsigned room = out || first ? *count : 0;
    *count = 0;
    for (size_t i = 0; i < call->gpu->process_count; i++) {
        const Process *process = &call->gpu->processes[i];
        if (!is_listed(call, process, kind)) continue;
        ProcessInfo info = info_of(call, process);
        if (out && *count < room) out[*count] = info;
        if (first && *count < room) first[*count] = (FirstProcessInfo){info.pid, info.memory};
        ++*count;
    }
    return *count > room ? INSUFFICIENT_SIZE : OK;
}

#define PROCESS_LIST(function, kind) \
    int function(const Slot *device, unsigned *count, ProcessInfo *out) { \
        CALL(function, device, ON_ANY); \
        return list(&call, kind, count, out, NULL); \
    }

#define FIRST_PROCESS_LIST(function, kind) \
    int function(const Slot *device, unsigned *count, FirstProcessInfo *out) { \
        CALL(function, device, ON_ANY); \
        return list(&call, kind, count, NULL, out); \
    }

PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v3, COMPUTE)
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v2, COMPUTE)
FIRST_PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses, COMPUTE)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, GRAPHICS)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, GRAPHICS)
FIRST_PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses, GRAPHICS)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, MPS)
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, MPS)
FIRST_PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses, MPS)

/* False when the process used nothing: the driver leaves it out. */
static bool sample(const Call *call, const Process *process, SampleInfo *out) {
    unsigned use[USE_COUNT], total = 0;
    for (int i = 0; i < USE_COUNT; i++) {
        total |= use[i] = (unsigned)whole(value_at(&process->use[i], call->elapsed));
        if (call->sentinel) use[i] = NONE_U32;
    }
    *out = (SampleInfo){
        .pid = process->pid,
        .sm = use[USE_SM],
        .mem = use[USE_MEM],
        .enc = use[USE_ENC],
        .dec = use[USE_DEC],
        .jpg = use[USE_JPG],
        .ofa = use[USE_OFA],
    };
    return total != 0;
}

/* Exactly one of `plain` and `rich` is written; both NULL asks for the size. */
static int samples(const Call *call, uint64_t last_seen, unsigned *count, Sample *plain, SampleInfo *rich) {
    uint64_t now = realtime_micros(), stamp = now - now % STAMP_MICROS;
    unsigned room = plain || rich ? *count : 0, found = 0;
    SampleInfo one;
    if (in_mig_mode(call)) return NOT_SUPPORTED;
    for (size_t i = 0; stamp > last_seen && i < call->gpu->process_count; i++) {
        if (!sample(call, &call->gpu->processes[i], &one)) continue;
        one.stamp = stamp;
        if (found < room && rich) rich[found] = one;
        if (found < room && plain) plain[found] = (Sample){one.pid, stamp, one.sm, one.mem, one.enc, one.dec};
        found++;
    }
    *count = found;
    if (found == 0) return NOT_FOUND;
    return found > room ? INSUFFICIENT_SIZE : OK;
}

/* What the card did in each window, whoever caused it. The driver keeps those of the last 14 seconds. */
int nvmlDeviceGetSamples(const Slot *device, unsigned type, uint64_t last_seen, unsigned *value_type, unsigned *count,
                         Window *out) {
    CALL(nvmlDeviceGetSamples, device, ON_GPU);
    uint64_t now = realtime_micros(), newest = now - now % STAMP_MICROS, oldest = newest - 70 * STAMP_MICROS;
    unsigned room = out ? *count : 0, found = 0, busy = 0;
    if (in_mig_mode(&call) || type != GPU_UTILISATION) return NOT_SUPPORTED;
    int code = put_u32(reading(&call, K_utilization_gpu, 0, 0), &busy);
    if (code) return code;
    if (last_seen < oldest) last_seen = oldest;
    for (uint64_t stamp = last_seen - last_seen % STAMP_MICROS + STAMP_MICROS; stamp <= newest; stamp += STAMP_MICROS) {
        if (found < room) out[found] = (Window){stamp, busy};
        found++;
    }
    *value_type = AS_UINT;
    *count = found;
    return found ? OK : NOT_FOUND;
}

int nvmlDeviceGetProcessUtilization(const Slot *device, Sample *out, unsigned *count, uint64_t last_seen) {
    CALL(nvmlDeviceGetProcessUtilization, device, ON_GPU);
    return samples(&call, last_seen, count, out, NULL);
}

int nvmlDeviceGetProcessesUtilizationInfo(const Slot *device, SamplesInfo *info) {
    CALL(nvmlDeviceGetProcessesUtilizationInfo, device, ON_GPU);
    if (info->version != UTILISATION_INFO_V1) return VERSION_MISMATCH;
    return samples(&call, info->last_seen, &info->count, NULL, info->samples);
}
