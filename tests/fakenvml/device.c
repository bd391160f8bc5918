/* Who a card is, and every reading that is one or a few plain numbers. */
#include "fakenvml.h"

#include <stdio.h>
#include <string.h>

#define MEMORY_V2 0x02000028u
#define TEMPERATURE_V1 0x0100000Cu
#define DEFAULT_MEMORY (80ull << 30)
#define SAMPLING_MICROS 167000u

typedef struct {
    char bus_id_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} PciInfo;

typedef struct {
    uint64_t total, free, used;
} Memory;

typedef struct {
    unsigned version;
    uint64_t total, reserved, free, used;
} MemoryV2;

typedef struct {
    unsigned gpu, memory;
} Utilisation;

typedef struct {
    unsigned version, sensor;
    int temperature;
} TemperatureV1;

typedef struct {
    uint64_t reference, violation;
} Violation;

typedef struct {
    unsigned code, state;
    char info[128], product[128];
    unsigned enabled;
    uint32_t expiry[4];
} LicenseV4;

typedef struct {
    int supported;
    unsigned count;
    LicenseV4 features[3];
} LicensesV4;

/* --- handles and names --- */

int nvmlDeviceGetCount_v2(unsigned *out) {
    CALL(nvmlDeviceGetCount_v2, NULL, NO_DEVICE);
    *out = (unsigned)call.state->gpu_count;
    return OK;
}

static Slot *card(unsigned index) {
    State *state = state_acquire();
    Slot *slot = state && index < state->gpu_count ? state->gpus[index].slot : NULL;
    if (state) state_release(state);
    return slot;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Slot **out) {
    Slot *slot = card(index);
    CALL(nvmlDeviceGetHandleByIndex_v2, slot, NO_DEVICE);
    if (slot == NULL) return INVALID_ARGUMENT;
    *out = slot;
    return OK;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, Slot **out) {
    state_lock();
    Slot *slot = slot_locked(uuid);
    state_unlock();
    CALL(nvmlDeviceGetHandleByUUID, slot, NO_DEVICE);
    int gpu, mig;
    if (!slot_place(call.state, slot, &gpu, &mig)) return NOT_FOUND;
    *out = slot;
    return OK;
}

int nvmlDeviceGetUUID(const Slot *device, char *out, unsigned size) {
    CALL(nvmlDeviceGetUUID, device, ON_ANY);
    return put_text(&call, device->uuid, out, size);
}

int nvmlDeviceGetIndex(const Slot *device, unsigned *out) {
    CALL(nvmlDeviceGetIndex, device, ON_ANY);
    *out = (unsigned)(call.mig ? call.mig - call.gpu->migs : call.gpu - call.state->gpus);
    return OK;
}

int nvmlDeviceGetMinorNumber(const Slot *device, unsigned *out) {
    CALL(nvmlDeviceGetMinorNumber, device, ON_GPU);
    *out = (unsigned)setting(&call, K_minor, 0, (uint64_t)(call.gpu - call.state->gpus));
    return OK;
}

int nvmlDeviceGetName(const Slot *device, char *out, unsigned size) {
    CALL(nvmlDeviceGetName, device, ON_ANY);
    char name[2 * TEXT_SIZE + 8];
    snprintf(name, sizeof name, "%s%s%s", call.gpu->name, call.mig ? " MIG " : "", call.mig ? call.mig->profile : "");
    return put_text(&call, name, out, size);
}

#define TEXT_GETTER(function, member) \
    int function(const Slot *device, char *out, unsigned size) { \
        CALL(function, device, ON_ANY); \
        return put_text(&call, call.gpu->member, out, size); \
    }

TEXT_GETTER(nvmlDeviceGetVbiosVersion, vbios)
TEXT_GETTER(nvmlDeviceGetSerial, serial)
TEXT_GETTER(nvmlDeviceGetInforomImageVersion, inforom[3])

int nvmlDeviceGetInforomVersion(const Slot *device, unsigned object, char *out, unsigned size) {
    CALL(nvmlDeviceGetInforomVersion, device, ON_ANY);
    return object < 3 ? put_text(&call, call.gpu->inforom[object], out, size) : INVALID_ARGUMENT;
}

int nvmlDeviceGetPciInfo_v3(const Slot *device, PciInfo *out) {
    CALL(nvmlDeviceGetPciInfo_v3, device, ON_ANY);
    *out = (PciInfo){.device_id = 0x233510DE};
    if (sscanf(call.gpu->pci, "%x:%x:%x", &out->domain, &out->bus, &out->device) != 3) return NOT_SUPPORTED;
    snprintf(out->bus_id, sizeof out->bus_id, "%08X:%02X:%02X.0", out->domain, out->bus, out->device);
    snprintf(out->bus_id_legacy, sizeof out->bus_id_legacy, "%04X:%02X:%02X.0", out->domain & 0xFFFF,
             out->bus & 0xFF, out->device & 0xFF);
    return OK;
}

int nvmlDeviceGetCudaComputeCapability(const Slot *device, unsigned *major, unsigned *minor) {
    CALL(nvmlDeviceGetCudaComputeCapability, device, ON_ANY);
    int code = put_u32(reading(&call, K_capability, 0, 0), major);
    return code ? code : put_u32(reading(&call, K_capability, 1, 0), minor);
}

/* --- to other cards --- */

#define TOPOLOGY_SYSTEM 50u

int nvmlDeviceGetTopologyCommonAncestor(const Slot *device, const Slot *other, unsigned *out) {
    CALL(nvmlDeviceGetTopologyCommonAncestor, device, ON_GPU);
    (void)other;
    *out = TOPOLOGY_SYSTEM;
    return OK;
}

int nvmlDeviceGetNvLinkState(const Slot *device, unsigned link, unsigned *out) {
    CALL(nvmlDeviceGetNvLinkState, device, ON_GPU);
    (void)link, (void)out;
    return NOT_SUPPORTED;
}

/* --- one number --- */

#define UINT_GETTER(function, key, works) \
    int function(const Slot *device, unsigned *out) { \
        CALL(function, device, works); \
        return put_u32(reading(&call, key, 0, 0), out); \
    }

#define UINT_GETTER_BY(function, key) \
    int function(const Slot *device, unsigned which, unsigned *out) { \
        CALL(function, device, ON_GPU); \
        return put_u32(reading(&call, key, which, 0), out); \
    }

#define U64_GETTER(function, key) \
    int function(const Slot *device, uint64_t *out) { \
        CALL(function, device, ON_GPU); \
        return put_u64(reading(&call, key, 0, 0), out); \
    }

/* Utilisation of a card in MIG mode is refused, like an instance's. */
#define ENGINE_GETTER(function, key) \
    int function(const Slot *device, unsigned *out, unsigned *sampling_micros) { \
        CALL(function, device, ON_GPU); \
        if (in_mig_mode(&call)) return NOT_SUPPORTED; \
        *sampling_micros = SAMPLING_MICROS; \
        return put_u32(reading(&call, key, 0, 0), out); \
    }

UINT_GETTER(nvmlDeviceGetArchitecture, K_architecture, ON_ANY)
UINT_GETTER(nvmlDeviceGetBrand, K_brand, ON_ANY)
UINT_GETTER(nvmlDeviceGetNumGpuCores, K_cores, ON_GPU)
UINT_GETTER(nvmlDeviceGetComputeMode, K_compute_mode, ON_ANY)
UINT_GETTER(nvmlDeviceGetPersistenceMode, K_persistence, ON_ANY)
UINT_GETTER(nvmlDeviceGetPowerUsage, K_power, ON_GPU)
UINT_GETTER(nvmlDeviceGetEnforcedPowerLimit, K_power_limit_enforced, ON_GPU)
UINT_GETTER(nvmlDeviceGetPowerManagementLimit, K_power_limit, ON_GPU)
UINT_GETTER(nvmlDeviceGetPerformanceState, K_performance_state, ON_GPU)
UINT_GETTER(nvmlDeviceGetFanSpeed, K_fan, ON_GPU)
UINT_GETTER(nvmlDeviceGetCurrPcieLinkGeneration, K_pcie_generation, ON_GPU)
UINT_GETTER(nvmlDeviceGetCurrPcieLinkWidth, K_pcie_width, ON_GPU)
UINT_GETTER(nvmlDeviceGetMaxPcieLinkGeneration, K_pcie_generation_max, ON_GPU)
UINT_GETTER(nvmlDeviceGetMaxPcieLinkWidth, K_pcie_width_max, ON_GPU)
UINT_GETTER(nvmlDeviceGetPcieReplayCounter, K_pcie_replays, ON_GPU)

UINT_GETTER_BY(nvmlDeviceGetTemperature, K_temperature)
UINT_GETTER_BY(nvmlDeviceGetTemperatureThreshold, K_threshold)
UINT_GETTER_BY(nvmlDeviceGetClockInfo, K_clock)
UINT_GETTER_BY(nvmlDeviceGetMaxClockInfo, K_clock_max)
UINT_GETTER_BY(nvmlDeviceGetApplicationsClock, K_clock_application)
UINT_GETTER_BY(nvmlDeviceGetPcieThroughput, K_pcie_throughput)

U64_GETTER(nvmlDeviceGetTotalEnergyConsumption, K_energy)
U64_GETTER(nvmlDeviceGetCurrentClocksEventReasons, K_clocks_event_reasons)
U64_GETTER(nvmlDeviceGetCurrentClocksThrottleReasons, K_clocks_event_reasons)

ENGINE_GETTER(nvmlDeviceGetEncoderUtilization, K_encoder)
ENGINE_GETTER(nvmlDeviceGetDecoderUtilization, K_decoder)
ENGINE_GETTER(nvmlDeviceGetJpgUtilization, K_jpg)
ENGINE_GETTER(nvmlDeviceGetOfaUtilization, K_ofa)

/* --- a few numbers --- */

/* `used` is without the driver's reserve. */
static int memory(const Call *call, MemoryV2 *out) {
    out->total = setting(call, K_memory_total, 0, DEFAULT_MEMORY);
    out->reserved = setting(call, K_memory_reserved, 0, 0);
    out->used = setting(call, K_memory_used, 0, 0);
    out->free = out->total - out->reserved - out->used;
    Reading used = reading(call, K_memory_used, 0, 0);
    if (call->sentinel) out->total = out->reserved = out->free = NONE_U64;
    if (call->sentinel || used.unknown) out->used = NONE_U64;
    return used.code == NOT_SUPPORTED ? OK : used.code;
}

int nvmlDeviceGetMemoryInfo_v2(const Slot *device, MemoryV2 *out) {
    CALL(nvmlDeviceGetMemoryInfo_v2, device, ON_ANY);
    return out->version == MEMORY_V2 ? memory(&call, out) : VERSION_MISMATCH;
}

/* The first version counts the driver's reserve as used. */
int nvmlDeviceGetMemoryInfo(const Slot *device, Memory *out) {
    CALL(nvmlDeviceGetMemoryInfo, device, ON_ANY);
    MemoryV2 full;
    int code = memory(&call, &full);
    *out = (Memory){full.total, full.free, full.used == NONE_U64 ? NONE_U64 : full.used + full.reserved};
    return code;
}

int nvmlDeviceGetBAR1MemoryInfo(const Slot *device, Memory *out) {
    CALL(nvmlDeviceGetBAR1MemoryInfo, device, ON_GPU);
    int code = put_u64(reading(&call, K_bar1_total, 0, 0), &out->total);
    if (code == OK) code = put_u64(reading(&call, K_bar1_used, 0, 0), &out->used);
    out->free = call.sentinel ? NONE_U64 : out->total - out->used;
    return code;
}

int nvmlDeviceGetUtilizationRates(const Slot *device, Utilisation *out) {
    CALL(nvmlDeviceGetUtilizationRates, device, ON_GPU);
    if (in_mig_mode(&call)) return NOT_SUPPORTED;
    int code = put_u32(reading(&call, K_utilization_gpu, 0, 0), &out->gpu);
    return code ? code : put_u32(reading(&call, K_utilization_memory, 0, 0), &out->memory);
}

int nvmlDeviceGetTemperatureV(const Slot *device, TemperatureV1 *out) {
    CALL(nvmlDeviceGetTemperatureV, device, ON_GPU);
    if (out->version != TEMPERATURE_V1) return VERSION_MISMATCH;
    return put_u32(reading(&call, K_temperature, out->sensor, 0), (unsigned *)&out->temperature);
}

int nvmlDeviceGetTotalEccErrors(const Slot *device, unsigned type, unsigned counter, uint64_t *out) {
    CALL(nvmlDeviceGetTotalEccErrors, device, ON_ANY);
    return put_u64(reading(&call, K_ecc, type, counter), out);
}

#define SRAM 7u

int nvmlDeviceGetMemoryErrorCounter(const Slot *device, unsigned type, unsigned counter, unsigned location,
                                    uint64_t *out) {
    CALL(nvmlDeviceGetMemoryErrorCounter, device, ON_GPU);
    return location == SRAM ? put_u64(reading(&call, K_ecc_sram, type, counter), out) : NOT_SUPPORTED;
}

int nvmlDeviceGetRemappedRows(const Slot *device, unsigned *correctable, unsigned *uncorrectable, unsigned *pending,
                              unsigned *failed) {
    CALL(nvmlDeviceGetRemappedRows, device, ON_GPU);
    unsigned *outs[] = {correctable, uncorrectable, pending, failed};
    int code = OK;
    for (unsigned i = 0; code == OK && i < 4; i++) code = put_u32(reading(&call, K_remapped, i, 0), outs[i]);
    return code;
}

/* Without a value, a card that needs no license. With one, the state of the only license it lists: for virtual GPUs. */
int nvmlDeviceGetGridLicensableFeatures_v4(const Slot *device, LicensesV4 *out) {
    CALL(nvmlDeviceGetGridLicensableFeatures_v4, device, ON_GPU);
    Reading state = reading(&call, K_vgpu_license, 0, 0);
    *out = (LicensesV4){0};
    if (state.code == NOT_SUPPORTED) return OK;
    out->supported = 1;
    out->count = 1;
    out->features[0].code = 1;
    return put_u32(state, &out->features[0].state);
}

int nvmlDeviceGetViolationStatus(const Slot *device, unsigned policy, Violation *out) {
    CALL(nvmlDeviceGetViolationStatus, device, ON_GPU);
    out->reference = realtime_micros();
    return put_u64(reading(&call, K_violation, policy, 0), &out->violation);
}
