/* A scripted stand-in for libnvidia-ml.so.1. The script language is described in script.c. */
#ifndef FAKENVML_H
#define FAKENVML_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_GPUS 16
#define MAX_MIGS 8
#define UUID_SIZE 96
#define TEXT_SIZE 96
#define LINE_SIZE 256
#define NONE_U32 0xFFFFFFFFu
#define NONE_U64 0xFFFFFFFFFFFFFFFFull

enum {
    OK = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    TIMEOUT = 10,
    VERSION_MISMATCH = 25,
    GPU_NOT_FOUND = 28,
    UNKNOWN_ERROR = 999,
};

/* Every name that `set` knows. A name outside this list is an error in the script. */
#define KEYS(X) \
    X(architecture) X(bar1_total) X(bar1_used) X(brand) X(capability) X(clock) X(clock_application) X(clock_max) X(clocks_event_reasons) \
    X(compute_mode) X(copy_engines) X(cores) X(decoder) X(decoders) X(ecc) X(ecc_sram) X(encoder) X(encoders) X(energy) \
    X(event_types) X(fan) X(field) X(gpm) X(gpm_supported) X(jpegs) X(jpg) X(memory_reserved) X(memory_total) \
    X(memory_used) X(mig_max) X(mig_mode) X(mig_pending) X(minor) X(multiprocessors) X(ofa) X(ofas) \
    X(pcie_generation) X(pcie_generation_max) X(pcie_replays) X(pcie_throughput) X(pcie_width) \
    X(pcie_width_max) X(performance_state) X(persistence) X(placement) X(power) X(power_limit) X(power_limit_enforced) \
    X(remapped) X(slices_compute) X(slices_gpu) X(temperature) X(threshold) X(utilization_gpu) \
    X(utilization_memory) X(vgpu_license) X(violation)

#define KEY_ENUM(name) K_##name,
typedef enum { KEYS(KEY_ENUM) KEY_COUNT } Key;

/* What a device handle points to: an identity that outlives every script. */
typedef struct Slot {
    struct Slot *next;
    uint64_t delivered; /* sequence number of the last event handed out */
    char uuid[UUID_SIZE];
} Slot;

typedef enum { NUMBER, UNKNOWN, REFUSED } ValueKind;
typedef enum { AS_DOUBLE = 0, AS_UINT = 1, AS_U64 = 3, AS_S64 = 4, AS_INT = 5 } ValueType;

typedef struct {
    long double base;
    double rate, amplitude, period;
    ValueKind kind;
    ValueType type;
    int code;
} Value;

typedef struct {
    Key key;
    unsigned a, b;
    Value value;
} Entry;

typedef struct {
    Entry *items;
    size_t count;
} Table;

enum { COMPUTE = 1, GRAPHICS = 2, MPS = 4 };
enum { USE_SM, USE_MEM, USE_ENC, USE_DEC, USE_JPG, USE_OFA, USE_COUNT };

typedef struct {
    unsigned pid, kinds, gi, ci;
    Value memory, use[USE_COUNT];
} Process;

typedef struct {
    bool present;
    Slot *slot;
    unsigned gi, ci;
    char profile[TEXT_SIZE];
    Table values;
} Mig;

typedef struct {
    Slot *slot;
    char name[TEXT_SIZE], pci[TEXT_SIZE], vbios[TEXT_SIZE], serial[TEXT_SIZE];
    char inforom[4][TEXT_SIZE]; /* OEM, ECC, power, and the whole image */
    Table values;
    Process *processes;
    size_t process_count;
    Mig migs[MAX_MIGS];
} Gpu;

/* One exported function. The linker gathers all of them in one section. */
typedef struct {
    const char *name;
    atomic_ulong calls;
} __attribute__((aligned(16))) Site;

extern Site __start_sites[], __stop_sites[];
#define SITE_COUNT ((size_t)(__stop_sites - __start_sites))

typedef enum { FAULT_NONE, FAULT_RETURN, FAULT_DELAY, FAULT_HANG, FAULT_CRASH, FAULT_SENTINEL } FaultKind;
enum { ANY = -1 };

typedef struct {
    const Site *site; /* NULL: any call */
    int gpu, mig;     /* ANY: any device */
    FaultKind kind;
    double argument; /* return code or microseconds */
    unsigned long times, used; /* times 0: for ever */
    char text[LINE_SIZE];
} Fault;

typedef struct {
    unsigned gpu, gi, ci;
    uint64_t xid, sequence;
} Event;

typedef struct {
    unsigned id;
    double micros;
} FieldDelay;

/* One script, read. Only reference counts and fault counts change after parsing, both under the lock. */
typedef struct {
    unsigned references;
    char driver[TEXT_SIZE], nvml[TEXT_SIZE];
    int cuda, init_result;
    double epoch; /* seconds of CLOCK_MONOTONIC at which moving values stand at their base */
    Gpu gpus[MAX_GPUS];
    size_t gpu_count;
    Fault *faults;
    size_t fault_count;
    Event *events;
    size_t event_count;
    FieldDelay *field_delays;
    size_t field_delay_count;
    double *delays; /* microseconds by site */
} State;

typedef struct {
    State *state;
    const Gpu *gpu;
    const Mig *mig;
    double entered, elapsed; /* seconds of CLOCK_MONOTONIC; seconds since the epoch */
    bool sentinel;
} Call;

typedef struct {
    int code;
    bool unknown;
    ValueType type;
    long double number;
} Reading;

/* script.c */
State *script_parse(char *text, double epoch);
void script_free(State *state);

/* state.c: what a name with _locked says needs the lock held */
void state_lock(void);
void state_unlock(void);
State *state_refresh_locked(void);
State *state_acquire(void);
void state_release(State *state);
Slot *slot_locked(const char *uuid);
bool slot_place(const State *state, const Slot *slot, int *gpu, int *mig);
double seconds_now(void);
uint64_t realtime_micros(void);

/* call.c */
enum { NO_DEVICE = 0, ON_GPU = 1, ON_MIG = 2, ON_ANY = 3, BEFORE_INIT = 4 };
int call_begin(Call *call, Site *site, const Slot *device, unsigned works);
void call_end(Call *call);
void sleep_until(double monotonic_seconds);

#define SITE(function) static Site site __attribute__((section("sites"), used)) = {#function, 0}

/* Counts the call, plays its delay and faults, and leaves the caller on a refusal. Holds no lock. */
#define CALL(function, device, works) \
    SITE(function); \
    Call call __attribute__((cleanup(call_end))) = {0}; \
    do { \
        int refusal = call_begin(&call, &site, device, works); \
        if (refusal != OK) return refusal; \
    } while (0)

/* value.c */
const Entry *table_find(const Table *table, Key key, unsigned a, unsigned b);
void table_sort(Table *table);
long double value_at(const Value *value, double elapsed);
uint64_t whole(long double number);
Reading reading_of(const Call *call, const Entry *entry);
Reading reading(const Call *call, Key key, unsigned a, unsigned b);
uint64_t setting(const Call *call, Key key, unsigned a, uint64_t otherwise);
int put_u32(Reading reading, unsigned *out);
int put_u64(Reading reading, uint64_t *out);
int put_text(const Call *call, const char *text, char *out, unsigned size);

/* system.c */
bool is_initialised_locked(void);
int open_device(const char *name);

/* mig.c */
bool in_mig_mode(const Call *call);
const Mig *gpu_instance(const Gpu *gpu, unsigned gi);

/* profile.c */
unsigned profile_id(const Mig *mig);

#endif
