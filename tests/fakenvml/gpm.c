/* GPM: samples of the profiling counters, and the metrics between two of them. */
#include "fakenvml.h"

#include <math.h>
#include <stdlib.h>

#define GPM_VERSION 1u
#define GPM_METRIC_MAX 477u
#define GPM_REFUSED_FROM 210u /* ids from here on are newer than the driver that is played */
#define HOPPER 9u

typedef struct {
    const Slot *device; /* NULL until the sample has been taken */
    unsigned gi;        /* NONE_U32 for the whole card */
} GpmSample;

typedef struct {
    unsigned id;
    int code;
    double value;
    const char *short_name, *long_name, *unit;
} GpmMetric;

typedef struct {
    unsigned version, count;
    GpmSample *first, *second;
    GpmMetric metrics[GPM_METRIC_MAX];
} GpmMetricsGet;

typedef struct {
    unsigned version, supported;
} GpmSupport;

static atomic_int live_samples;

/* Samples allocated and not freed. */
int fakenvml_live_samples(void) { return atomic_load(&live_samples); }

static bool is_supported(const Call *call) {
    return setting(call, K_gpm_supported, 0, setting(call, K_architecture, 0, 0) >= HOPPER) != 0;
}

int nvmlGpmQueryDeviceSupport(const Slot *device, GpmSupport *out) {
    CALL(nvmlGpmQueryDeviceSupport, device, ON_ANY);
    if (out->version != GPM_VERSION) return VERSION_MISMATCH;
    out->supported = is_supported(&call);
    return OK;
}

int nvmlGpmSampleAlloc(GpmSample **out) {
    CALL(nvmlGpmSampleAlloc, NULL, NO_DEVICE);
    *out = calloc(1, sizeof **out);
    atomic_fetch_add(&live_samples, 1);
    return OK;
}

int nvmlGpmSampleFree(GpmSample *sample) {
    CALL(nvmlGpmSampleFree, NULL, NO_DEVICE);
    if (sample == NULL) return INVALID_ARGUMENT;
    free(sample);
    atomic_fetch_sub(&live_samples, 1);
    return OK;
}

static int take(const Call *call, unsigned gi, GpmSample *sample) {
    if (sample == NULL) return INVALID_ARGUMENT;
    if (!is_supported(call)) return NOT_SUPPORTED;
    *sample = (GpmSample){.device = call->gpu->slot, .gi = gi};
    return OK;
}

int nvmlGpmSampleGet(const Slot *device, GpmSample *sample) {
    CALL(nvmlGpmSampleGet, device, ON_ANY);
    return take(&call, call.mig ? call.mig->gi : NONE_U32, sample);
}

int nvmlGpmMigSampleGet(const Slot *device, unsigned gi, GpmSample *sample) {
    CALL(nvmlGpmMigSampleGet, device, ON_GPU);
    if (!in_mig_mode(&call)) return NOT_SUPPORTED;
    if (gpu_instance(call.gpu, gi) == NULL) return INVALID_ARGUMENT;
    return take(&call, gi, sample);
}

/* Like the driver: an id that is not known answers success and 0. */
static void answer(const Call *call, const Table *values, GpmMetric *metric) {
    const Entry *entry = table_find(values, K_gpm, metric->id, 0);
    Reading said = reading_of(call, entry);
    if (entry == NULL) said = (Reading){.code = metric->id < GPM_REFUSED_FROM ? OK : INVALID_ARGUMENT};
    metric->code = said.code;
    metric->value = said.unknown ? NAN : (double)said.number;
}

int nvmlGpmMetricsGet(GpmMetricsGet *get) {
    const GpmSample *one = get->first, *two = get->second;
    CALL(nvmlGpmMetricsGet, two ? two->device : NULL, NO_DEVICE);
    int gpu, mig;
    if (get->version != GPM_VERSION) return VERSION_MISMATCH;
    if (one == NULL || two == NULL || get->count > GPM_METRIC_MAX) return INVALID_ARGUMENT;
    if (one->device == NULL || one->device != two->device || one->gi != two->gi) return INVALID_ARGUMENT;
    if (!slot_place(call.state, two->device, &gpu, &mig)) return GPU_NOT_FOUND;
    call.gpu = &call.state->gpus[gpu];
    const Mig *sampled = two->gi == NONE_U32 ? NULL : gpu_instance(call.gpu, two->gi);
    if (two->gi != NONE_U32 && sampled == NULL) return INVALID_ARGUMENT;
    for (unsigned i = 0; i < get->count; i++)
        answer(&call, sampled ? &sampled->values : &call.gpu->values, &get->metrics[i]);
    return OK;
}
