/* Field values: many readings in one call, each with its own return code. */
#include "fakenvml.h"

#include <math.h>

typedef struct {
    unsigned id, scope;
    int64_t timestamp, latency_micros;
    unsigned type;
    int code;
    union {
        double d;
        uint64_t u;
        int64_t s;
        int i;
    } value;
} FieldValue;

static double delay_of(const State *state, unsigned id) {
    for (size_t i = 0; i < state->field_delay_count; i++)
        if (state->field_delays[i].id == id) return state->field_delays[i].micros;
    return 0;
}

static void store(const Reading *said, FieldValue *out) {
    out->value.u = 0;
    if (said->type == AS_DOUBLE) out->value.d = said->unknown ? NAN : (double)said->number;
    else if (said->type == AS_INT) out->value.i = said->unknown ? -1 : (int)said->number;
    else if (said->type == AS_S64) out->value.s = said->unknown ? -1 : (int64_t)said->number;
    else if (said->type == AS_UINT) out->value.u = said->unknown ? NONE_U32 : (unsigned)whole(said->number);
    else out->value.u = said->unknown ? NONE_U64 : whole(said->number);
}

/* A card's fields are not its instances': most are readings that an instance refuses. */
static void answer(const Call *call, FieldValue *out) {
    const Table *values = call->mig ? &call->mig->values : &call->gpu->values;
    Reading said = reading_of(call, table_find(values, K_field, out->id, out->scope));
    out->timestamp = (int64_t)realtime_micros();
    out->latency_micros = (int64_t)delay_of(call->state, out->id);
    out->code = said.code;
    out->type = said.type;
    store(&said, out);
}

int nvmlDeviceGetFieldValues(const Slot *device, int count, FieldValue *values) {
    CALL(nvmlDeviceGetFieldValues, device, ON_ANY);
    double delay = 0;
    if (values == NULL || count <= 0) return INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) delay += delay_of(call.state, values[i].id);
    if (delay > 0) sleep_until(call.entered + delay / 1e6);
    call.elapsed = seconds_now() - call.state->epoch;
    for (int i = 0; i < count; i++) answer(&call, &values[i]);
    return OK;
}
