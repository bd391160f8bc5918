/* Starting and stopping the library, its versions, and the device files it holds open. */
#define _GNU_SOURCE
#include "fakenvml.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned users;
static int descriptors[MAX_GPUS + 1];
static size_t descriptor_count;

bool is_initialised_locked(void) { return users > 0; }

/* -1 when FAKENVML_DEV names no directory. */
int open_device(const char *name) {
    const char *directory = getenv("FAKENVML_DEV");
    char path[4096];
    if (directory == NULL) return -1;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return open(path, O_RDWR | O_CLOEXEC);
}

static void hold_locked(const char *name) {
    int fd = open_device(name);
    if (fd >= 0) descriptors[descriptor_count++] = fd;
}

static void start_locked(Call *call) {
    char name[32];
    if (users++ > 0) return;
    hold_locked("nvidiactl");
    for (size_t i = 0; i < call->state->gpu_count; i++) {
        call->gpu = &call->state->gpus[i];
        snprintf(name, sizeof name, "nvidia%u", (unsigned)setting(call, K_minor, 0, i));
        hold_locked(name);
    }
}

static int start(Call *call) {
    if (call->state->init_result != OK) return call->state->init_result;
    state_lock();
    start_locked(call);
    state_unlock();
    return OK;
}

int nvmlInitWithFlags(unsigned flags) {
    CALL(nvmlInitWithFlags, NULL, BEFORE_INIT);
    (void)flags;
    return start(&call);
}

int nvmlInit_v2(void) {
    CALL(nvmlInit_v2, NULL, BEFORE_INIT);
    return start(&call);
}

int nvmlShutdown(void) {
    CALL(nvmlShutdown, NULL, NO_DEVICE);
    state_lock();
    if (--users == 0)
        while (descriptor_count > 0) close(descriptors[--descriptor_count]);
    state_unlock();
    return OK;
}

const char *nvmlErrorString(int result) {
    static const struct {
        int code;
        const char *text;
    } strings[] = {
        {OK, "Success"},
        {UNINITIALIZED, "Uninitialized"},
        {INVALID_ARGUMENT, "Invalid Argument"},
        {NOT_SUPPORTED, "Not Supported"},
        {4, "Insufficient Permissions"},
        {NOT_FOUND, "Not Found"},
        {INSUFFICIENT_SIZE, "Insufficient Size"},
        {9, "Driver Not Loaded"},
        {TIMEOUT, "Timeout"},
        {13, "Function Not Found"},
        {15, "GPU is lost"},
        {16, "GPU requires reset"},
        {18, "Driver/library version mismatch"},
        {VERSION_MISMATCH, "Argument version mismatch"},
        {GPU_NOT_FOUND, "GPU not found"},
    };
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
        if (strings[i].code == result) return strings[i].text;
    return "Unknown Error";
}

int nvmlSystemGetDriverVersion(char *out, unsigned size) {
    CALL(nvmlSystemGetDriverVersion, NULL, NO_DEVICE);
    return put_text(&call, call.state->driver, out, size);
}

int nvmlSystemGetNVMLVersion(char *out, unsigned size) {
    CALL(nvmlSystemGetNVMLVersion, NULL, NO_DEVICE);
    return put_text(&call, call.state->nvml, out, size);
}

int nvmlSystemGetCudaDriverVersion_v2(int *out) {
    CALL(nvmlSystemGetCudaDriverVersion_v2, NULL, NO_DEVICE);
    *out = call.state->cuda;
    return OK;
}

int nvmlSystemGetCudaDriverVersion(int *out) {
    CALL(nvmlSystemGetCudaDriverVersion, NULL, NO_DEVICE);
    *out = call.state->cuda;
    return OK;
}
