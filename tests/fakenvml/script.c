/* The script language. One statement a line; `#` starts a comment line; a wrong line is named on stderr and leaves
 * the script before in force. The file is read again whenever it changes: replace it by rename, never in place.
 *
 *   driver TEXT                      driver version
 *   nvml TEXT                        library version
 *   cuda NUMBER                      CUDA driver version, 13000 is 13.0
 *   init CODE                        what nvmlInit answers; 9 driver not loaded, 18 version mismatch
 *   epoch SECONDS                    CLOCK_MONOTONIC time at which moving values stand at BASE (else: library load)
 *   delay CALL MICROSECONDS          how long every CALL takes
 *   delay nvmlDeviceGetFieldValues[ID] MICROSECONDS   what one field adds to its batch
 *   fault CALL DEVICE WHAT [times N] CALL is a C symbol or *; DEVICE is *, a GPU's index (its instances too) or
 *                                    GPU:INSTANCE; WHAT is `return CODE`, `delay MICROSECONDS`, `hang` (until the line
 *                                    is gone), `crash` (SIGSEGV) or `sentinel` (success, and the value is NVML's
 *                                    "not available"). The first matching line strikes. A line that stays keeps its
 *                                    count over a change of the script.
 *   event GPU XID SEQUENCE [GI CI]   delivered once, if SEQUENCE is above the last one delivered for that GPU. Events
 *                                    in the first script read are old and never delivered.
 *   gpu UUID                         a card; its index is its place in the file. The next lines are about it:
 *     name TEXT | pci DOMAIN:BUS:DEVICE.0 | vbios TEXT | serial TEXT
 *     inforom OBJECT TEXT            0 OEM, 1 ECC, 2 power, 3 the whole image
 *     set KEY[A,B] VALUE [TYPE]      KEYS in fakenvml.h; [A,B] or [A] where the call has arguments (clock type, field
 *                                    id and scope ...). TYPE of a field: uint, u64, int, s64, double.
 *     process PID MEMORY KINDS [NAME=VALUE ...]   KINDS of compute,graphics,mps; NAMEs gi ci sm mem enc dec jpg ofa
 *     instance INDEX UUID GI CI PROFILE           a MIG instance; `set` lines after it are about it
 *
 * VALUE is NUMBER, BASE+RATE/s (grows), BASE~AMPLITUDE/PERIOD (swings, period in seconds), `unknown` (success with
 * NVML's "not available") or !CODE (the reading is refused). A value that is not set is refused with NOT_SUPPORTED.
 */
#define _GNU_SOURCE
#include "fakenvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    State *state;
    Gpu *gpu;
    Mig *mig;
    const char *line; /* as written */
} Parser;

typedef bool Statement(Parser *parser, char *rest);

#define KEY_NAME(name) #name,
static const char *const key_names[] = {KEYS(KEY_NAME)};
static const char *const use_names[USE_COUNT] = {"sm", "mem", "enc", "dec", "jpg", "ofa"};

/* Room for one more item; doubles at powers of two. */
static void *grown(void *items, size_t count, size_t size) {
    if (count & (count - 1)) return items;
    return realloc(items, (count ? 2 * count : 1) * size);
}

#define APPEND(items, count) (items = grown(items, count, sizeof *(items)), &(items)[(count)++])

static char *next(char **rest) {
    if (*rest == NULL) return NULL;
    *rest += strspn(*rest, " \t");
    return **rest ? strsep(rest, " \t") : NULL;
}

static bool number(const char *text, double *out) {
    char *end;
    if (text == NULL || *text == '\0') return false;
    *out = strtod(text, &end);
    return *end == '\0';
}

static bool natural(const char *text, uint64_t *out) {
    char *end;
    if (text == NULL || *text < '0' || *text > '9') return false;
    *out = strtoull(text, &end, 0);
    return *end == '\0';
}

static bool small(const char *text, unsigned *out) {
    uint64_t wide;
    if (!natural(text, &wide) || wide > NONE_U32) return false;
    *out = (unsigned)wide;
    return true;
}

static bool movement(char *text, Value *out) {
    char *end = text;
    if (*text == '+') out->rate = strtod(text + 1, &end);
    if (*text == '~') out->amplitude = strtod(text + 1, &end);
    if (end == text || *end != '/') return false;
    if (*text == '+') return strcmp(end, "/s") == 0;
    return number(end + 1, &out->period) && out->period > 0;
}

static bool value(char *text, Value *out) {
    char *end;
    *out = (Value){.type = AS_U64};
    if (text == NULL) return false;
    if (strcmp(text, "unknown") == 0) {
        out->kind = UNKNOWN;
        return true;
    }
    if (*text == '!') {
        out->kind = REFUSED;
        out->code = (int)strtol(text + 1, &end, 10);
        return end != text + 1 && *end == '\0';
    }
    out->base = strtold(text, &end);
    return end != text && (*end == '\0' || movement(end, out));
}

static bool value_type(const char *text, ValueType *out) {
    static const struct {
        const char *name;
        ValueType type;
    } types[] = {{"double", AS_DOUBLE}, {"uint", AS_UINT}, {"u64", AS_U64}, {"s64", AS_S64}, {"int", AS_INT}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(text, types[i].name) == 0) {
            *out = types[i].type;
            return true;
        }
    return false;
}

/* KEY, KEY[A] or KEY[A,B] */
static bool key(char *text, Entry *out) {
    char *a = text, *b;
    if (text == NULL) return false;
    strsep(&a, "[");
    if (a) {
        if (strlen(a) < 2 || a[strlen(a) - 1] != ']') return false;
        a[strlen(a) - 1] = '\0';
        b = a;
        strsep(&b, ",");
        if (!small(a, &out->a) || (b && !small(b, &out->b))) return false;
    }
    for (out->key = 0; out->key < KEY_COUNT; out->key++)
        if (strcmp(text, key_names[out->key]) == 0) return true;
    return false;
}

static bool site_named(const char *name, const Site **out) {
    for (*out = __start_sites; name && *out < __stop_sites; ++*out)
        if (strcmp((*out)->name, name) == 0) return true;
    return false;
}

static bool text(char *out, const char *rest) {
    if (rest == NULL || strlen(rest) >= TEXT_SIZE) return false;
    strcpy(out, rest);
    return true;
}

static bool parse_driver(Parser *parser, char *rest) { return text(parser->state->driver, rest); }

static bool parse_nvml(Parser *parser, char *rest) { return text(parser->state->nvml, rest); }

static bool parse_cuda(Parser *parser, char *rest) { return small(rest, (unsigned *)&parser->state->cuda); }

static bool parse_init(Parser *parser, char *rest) { return small(rest, (unsigned *)&parser->state->init_result); }

static bool parse_epoch(Parser *parser, char *rest) { return number(rest, &parser->state->epoch); }

static bool parse_name(Parser *parser, char *rest) { return parser->gpu && text(parser->gpu->name, rest); }

static bool parse_pci(Parser *parser, char *rest) { return parser->gpu && text(parser->gpu->pci, rest); }

static bool parse_vbios(Parser *parser, char *rest) { return parser->gpu && text(parser->gpu->vbios, rest); }

static bool parse_serial(Parser *parser, char *rest) { return parser->gpu && text(parser->gpu->serial, rest); }

static bool parse_inforom(Parser *parser, char *rest) {
    unsigned object;
    const char *which = next(&rest);
    return parser->gpu && small(which, &object) && object < 4 && text(parser->gpu->inforom[object], rest);
}

static bool parse_delay(Parser *parser, char *rest) {
    State *state = parser->state;
    char *name = next(&rest), *id = name;
    const Site *site;
    double micros;
    if (name == NULL || !number(next(&rest), &micros)) return false;
    strsep(&id, "[");
    if (!site_named(name, &site)) return false;
    if (id == NULL) {
        state->delays[site - __start_sites] = micros;
        return true;
    }
    FieldDelay *delay = APPEND(state->field_delays, state->field_delay_count);
    delay->micros = micros;
    id[strcspn(id, "]")] = '\0';
    return strcmp(name, "nvmlDeviceGetFieldValues") == 0 && small(id, &delay->id);
}

static bool fault_device(char *name, Fault *out) {
    unsigned gpu, mig;
    char *instance = name;
    out->gpu = out->mig = ANY;
    if (name == NULL || strcmp(name, "*") == 0) return name != NULL;
    strsep(&instance, ":");
    if (!small(name, &gpu) || (instance && !small(instance, &mig))) return false;
    out->gpu = (int)gpu;
    if (instance) out->mig = (int)mig;
    return true;
}

static bool fault_kind(char **rest, Fault *out) {
    static const char *const kinds[] = {"", "return", "delay", "hang", "crash", "sentinel"};
    const char *name = next(rest);
    for (int kind = FAULT_RETURN; name && kind <= FAULT_SENTINEL; kind++)
        if (strcmp(name, kinds[kind]) == 0) out->kind = (FaultKind)kind;
    if (out->kind == FAULT_RETURN || out->kind == FAULT_DELAY) return number(next(rest), &out->argument);
    return out->kind != FAULT_NONE;
}

static bool parse_fault(Parser *parser, char *rest) {
    Fault *fault = APPEND(parser->state->faults, parser->state->fault_count);
    *fault = (Fault){0};
    if (strlen(parser->line) >= sizeof fault->text) return false;
    strcpy(fault->text, parser->line);
    const char *call = next(&rest), *times;
    if (call == NULL || (strcmp(call, "*") != 0 && !site_named(call, &fault->site))) return false;
    if (!fault_device(next(&rest), fault) || !fault_kind(&rest, fault)) return false;
    times = next(&rest);
    return times == NULL || (strcmp(times, "times") == 0 && natural(next(&rest), &fault->times) && fault->times > 0);
}

static bool parse_event(Parser *parser, char *rest) {
    Event *event = APPEND(parser->state->events, parser->state->event_count);
    *event = (Event){.gi = NONE_U32, .ci = NONE_U32};
    if (!small(next(&rest), &event->gpu) || !natural(next(&rest), &event->xid)) return false;
    if (!natural(next(&rest), &event->sequence)) return false;
    const char *gi = next(&rest);
    return gi == NULL || (small(gi, &event->gi) && small(next(&rest), &event->ci));
}

static bool parse_gpu(Parser *parser, char *rest) {
    State *state = parser->state;
    if (state->gpu_count == MAX_GPUS || strlen(rest) >= UUID_SIZE || strncmp(rest, "GPU-", 4) != 0) return false;
    parser->mig = NULL;
    parser->gpu = &state->gpus[state->gpu_count++];
    parser->gpu->slot = slot_locked(rest);
    return text(parser->gpu->name, "NVIDIA Fake GPU");
}

static bool parse_instance(Parser *parser, char *rest) {
    unsigned index;
    if (parser->gpu == NULL || !small(next(&rest), &index) || index >= MAX_MIGS) return false;
    parser->mig = &parser->gpu->migs[index];
    char *uuid = next(&rest);
    if (parser->mig->present || uuid == NULL || strncmp(uuid, "MIG-", 4) != 0 || strlen(uuid) >= UUID_SIZE) return false;
    parser->mig->present = true;
    parser->mig->slot = slot_locked(uuid);
    return small(next(&rest), &parser->mig->gi) && small(next(&rest), &parser->mig->ci) &&
           text(parser->mig->profile, next(&rest));
}

static bool parse_set(Parser *parser, char *rest) {
    if (parser->gpu == NULL) return false;
    Table *table = parser->mig ? &parser->mig->values : &parser->gpu->values;
    Entry *entry = APPEND(table->items, table->count);
    *entry = (Entry){0};
    if (!key(next(&rest), entry) || !value(next(&rest), &entry->value)) return false;
    const char *type = next(&rest);
    return type == NULL || value_type(type, &entry->value.type);
}

static bool process_kinds(char *names, unsigned *out) {
    if (names && strcmp(names, "ended") == 0) return true;
    for (char *name; (name = strsep(&names, ",")) != NULL;)
        if (strcmp(name, "compute") == 0) *out |= COMPUTE;
        else if (strcmp(name, "graphics") == 0) *out |= GRAPHICS;
        else if (strcmp(name, "mps") == 0) *out |= MPS;
        else return false;
    return *out != 0;
}

static bool process_option(char *name, Process *out) {
    char *said = name;
    strsep(&said, "=");
    if (strcmp(name, "gi") == 0) return small(said, &out->gi);
    if (strcmp(name, "ci") == 0) return small(said, &out->ci);
    for (int i = 0; i < USE_COUNT; i++)
        if (strcmp(name, use_names[i]) == 0) return value(said, &out->use[i]);
    return false;
}

static bool parse_process(Parser *parser, char *rest) {
    if (parser->gpu == NULL) return false;
    Process *process = APPEND(parser->gpu->processes, parser->gpu->process_count);
    *process = (Process){.gi = NONE_U32, .ci = NONE_U32};
    if (!small(next(&rest), &process->pid) || !value(next(&rest), &process->memory)) return false;
    if (!process_kinds(next(&rest), &process->kinds)) return false;
    for (char *option; (option = next(&rest)) != NULL;)
        if (!process_option(option, process)) return false;
    return true;
}

static bool parse_line(Parser *parser, char *rest) {
    static const struct {
        const char *name;
        Statement *parse;
    } statements[] = {
        {"driver", parse_driver}, {"nvml", parse_nvml},       {"cuda", parse_cuda},         {"init", parse_init},
        {"epoch", parse_epoch},   {"delay", parse_delay},     {"fault", parse_fault},       {"event", parse_event},
        {"gpu", parse_gpu},       {"name", parse_name},       {"pci", parse_pci},           {"vbios", parse_vbios},
        {"serial", parse_serial}, {"instance", parse_instance}, {"set", parse_set},         {"process", parse_process},
        {"inforom", parse_inforom},
    };
    const char *name = next(&rest);
    if (name == NULL || *name == '#') return true;
    for (size_t i = 0; rest && i < sizeof statements / sizeof *statements; i++)
        if (strcmp(name, statements[i].name) == 0) return statements[i].parse(parser, rest);
    return false;
}

static bool events_have_gpus(const State *state) {
    for (size_t i = 0; i < state->event_count; i++)
        if (state->events[i].gpu >= state->gpu_count) return false;
    return true;
}

static void sort_tables(State *state) {
    for (size_t i = 0; i < state->gpu_count; i++) {
        table_sort(&state->gpus[i].values);
        for (int j = 0; j < MAX_MIGS; j++) table_sort(&state->gpus[i].migs[j].values);
    }
}

/* NULL for a script with an error. The lock must be held: identities of new devices are made. */
State *script_parse(char *script, double epoch) {
    State *state = calloc(1, sizeof *state);
    Parser parser = {.state = state};
    bool good = true;
    state->epoch = epoch;
    state->delays = calloc(SITE_COUNT, sizeof *state->delays);
    int row = 1;
    for (char *line; good && (line = strsep(&script, "\n")) != NULL; row++) {
        char *written = strdup(line);
        parser.line = written;
        good = parse_line(&parser, line);
        if (!good) fprintf(stderr, "fakenvml: script line %d is wrong: %s\n", row, written);
        free(written);
    }
    if (good && !(good = events_have_gpus(state))) fputs("fakenvml: an event names a GPU that is not there\n", stderr);
    sort_tables(state);
    if (good) return state;
    script_free(state);
    return NULL;
}

void script_free(State *state) {
    for (size_t i = 0; i < state->gpu_count; i++) {
        for (int j = 0; j < MAX_MIGS; j++) free(state->gpus[i].migs[j].values.items);
        free(state->gpus[i].values.items);
        free(state->gpus[i].processes);
    }
    free(state->faults);
    free(state->events);
    free(state->field_delays);
    free(state->delays);
    free(state);
}
