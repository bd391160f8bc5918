/* Values of a script: finding them, moving them with time, writing them where the caller asked. */
#include "fakenvml.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *left, const void *right) {
    const Entry *x = left, *y = right;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    if (x->a != y->a) return x->a < y->a ? -1 : 1;
    if (x->b != y->b) return x->b < y->b ? -1 : 1;
    return 0;
}

/* The parser keeps tables in the order of `compare`. */
const Entry *table_find(const Table *table, Key key, unsigned a, unsigned b) {
    Entry wanted = {.key = key, .a = a, .b = b};
    if (table->count == 0) return NULL;
    return bsearch(&wanted, table->items, table->count, sizeof(Entry), compare);
}

void table_sort(Table *table) {
    if (table->count > 1) qsort(table->items, table->count, sizeof(Entry), compare);
}

long double value_at(const Value *value, double elapsed) {
    long double number = value->base + (long double)value->rate * elapsed;
    if (value->period > 0) number += value->amplitude * sin(2 * M_PI * elapsed / value->period);
    return number;
}

uint64_t whole(long double number) {
    if (number <= 0) return 0;
    return number >= 18446744073709551615.0L ? NONE_U64 : (uint64_t)number;
}

Reading reading_of(const Call *call, const Entry *entry) {
    if (entry == NULL) return (Reading){.code = NOT_SUPPORTED};
    const Value *value = &entry->value;
    if (value->kind == REFUSED) return (Reading){.code = value->code};
    return (Reading){
        .unknown = call->sentinel || value->kind == UNKNOWN,
        .type = value->type,
        .number = value_at(value, call->elapsed),
    };
}

/* An instance answers with its own value, else with its card's. Calls that an instance refuses never get here. */
Reading reading(const Call *call, Key key, unsigned a, unsigned b) {
    const Entry *entry = call->mig ? table_find(&call->mig->values, key, a, b) : NULL;
    return reading_of(call, entry ? entry : table_find(&call->gpu->values, key, a, b));
}

/* A plain number that is no measurement: no sentinel, no refusal. */
uint64_t setting(const Call *call, Key key, unsigned a, uint64_t otherwise) {
    const Entry *entry = call->mig ? table_find(&call->mig->values, key, a, 0) : NULL;
    if (entry == NULL) entry = table_find(&call->gpu->values, key, a, 0);
    return entry && entry->value.kind == NUMBER ? whole(value_at(&entry->value, call->elapsed)) : otherwise;
}

int put_u32(Reading reading, unsigned *out) {
    if (reading.code != OK) return reading.code;
    if (out == NULL) return INVALID_ARGUMENT;
    uint64_t number = whole(reading.number);
    *out = reading.unknown || number > NONE_U32 ? NONE_U32 : (unsigned)number;
    return OK;
}

int put_u64(Reading reading, uint64_t *out) {
    if (reading.code != OK) return reading.code;
    if (out == NULL) return INVALID_ARGUMENT;
    *out = reading.unknown ? NONE_U64 : whole(reading.number);
    return OK;
}

int put_text(const Call *call, const char *text, char *out, unsigned size) {
    const char *said = call->sentinel ? "N/A" : text;
    if (out == NULL) return INVALID_ARGUMENT;
    if (*said == '\0') return NOT_SUPPORTED;
    if (strlen(said) + 1 > size) return INSUFFICIENT_SIZE;
    strcpy(out, said);
    return OK;
}
