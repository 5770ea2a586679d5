/* The ladder of levels, and which rung this process stands on.
 *
 * Everything is found out once, behind pthread_once, and published by one release store, so a
 * first call may come from another constructor, from a static archive, or from many threads. */
#include "dispatch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "cpu.h"

#define FILL_ONE(kernel, dtype, level, arguments)                                                  \
    table->of[FILL_INDEX_##dtype].kernel = attnres_##kernel##_##dtype##_##level;
#define FILL_DTYPE(dtype, level) ATTNRES_KERNELS(FILL_ONE, dtype, level)
#define FILL_INDEX_f32 ATTNRES_F32
#define FILL_INDEX_f64 ATTNRES_F64
#define FILL_INDEX_f16 ATTNRES_F16
#define FILL_INDEX_bf16 ATTNRES_BF16

#define DEFINE_FILL(level)                                                                         \
    static void fill_##level(struct attnres_table *table)                                          \
    {                                                                                              \
        ATTNRES_DTYPES(FILL_DTYPE, level)                                                          \
    }

DEFINE_FILL(scalar)
#if ATTNRES_HAVE_AVX2
DEFINE_FILL(avx2)
#else
#define fill_avx2 NULL
#endif
#if ATTNRES_HAVE_AVX512
DEFINE_FILL(avx512)
#else
#define fill_avx512 NULL
#endif
#if ATTNRES_HAVE_NEON
DEFINE_FILL(neon)
#else
#define fill_neon NULL
#endif

struct rung {
    attnres_level level;
    unsigned needs;
    void (*fill)(struct attnres_table *); /* NULL: this build has no such level */
};

/* This architecture's levels, lowest first. */
static const struct rung ladder[] = {
    {ATTNRES_LEVEL_SCALAR, 0, fill_scalar},
#if defined(__x86_64__) || defined(__i386__)
    {ATTNRES_LEVEL_AVX2, ATTNRES_NEEDS_AVX2, fill_avx2},
    {ATTNRES_LEVEL_AVX512, ATTNRES_NEEDS_AVX512, fill_avx512},
#elif defined(__aarch64__)
    {ATTNRES_LEVEL_NEON, ATTNRES_NEEDS_NEON, fill_neon},
#endif
};
#define RUNGS (sizeof ladder / sizeof *ladder)

#define FEATURE_TEXT(name, text) text,
static const char *const feature_names[] = {
#if defined(__aarch64__)
    ATTNRES_ARM_FEATURES(FEATURE_TEXT)
#else
    ATTNRES_X86_FEATURES(FEATURE_TEXT)
#endif
};
#define FEATURES (sizeof feature_names / sizeof *feature_names)

static const char *const level_names[] = {"scalar", "avx2", "avx512", "neon"};
#define LEVELS (sizeof level_names / sizeof *level_names)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct attnres_table tables[RUNGS];
static _Atomic(const struct attnres_table *) current;
static _Atomic(const char *) current_reason;
static unsigned seen_features;
static size_t highest; /* rung chosen at the first call */
static char first_reason[256];
static char rung_reasons[RUNGS][160];

static int rung_runs(const struct rung *rung, unsigned features)
{
    return rung->fill && (rung->needs & ~features) == 0;
}

/* RUNGS if it is not a level of this architecture. */
static size_t rung_of(attnres_level level)
{
    size_t i = 0;
    while (i < RUNGS && ladder[i].level != level) {
        i++;
    }
    return i;
}

void attnres_table_fill(struct attnres_table *table, attnres_level level)
{
    const size_t top = rung_of(level);
    for (size_t i = 0; i <= top && i < RUNGS; i++) {
        if (ladder[i].fill) {
            ladder[i].fill(table);
        }
    }
}

static size_t choose_rung(unsigned features, const char *environment, char *reason,
                          size_t reason_size)
{
    size_t best = 0, wanted = RUNGS;
    attnres_level level;

    for (size_t i = 0; i < RUNGS; i++) {
        best = rung_runs(&ladder[i], features) ? i : best;
    }
    if (environment && attnres_level_from_name(environment, &level) == ATTNRES_OK) {
        wanted = rung_of(level);
    }
    const char *name = level_names[ladder[best].level];
    if (!environment || !*environment) {
        snprintf(reason, reason_size, "%s is the highest level that build, CPU and system support",
                 name);
    } else if (wanted == RUNGS) {
        snprintf(reason, reason_size,
                 "%s is the highest level that build, CPU and system support; ATTNRES_LEVEL=%.32s "
                 "is not a level here and was ignored",
                 name, environment);
    } else if (wanted < best) {
        while (!rung_runs(&ladder[wanted], features)) {
            wanted--; /* scalar always runs */
        }
        best = wanted;
        snprintf(reason, reason_size, "lowered by ATTNRES_LEVEL=%.32s", environment);
    } else {
        snprintf(reason, reason_size,
                 "%s is the highest level that build, CPU and system support; ATTNRES_LEVEL=%.32s "
                 "does not lower it",
                 name, environment);
    }
    return best;
}

attnres_level attnres_choose_level(unsigned features, const char *environment, char *reason,
                                   size_t reason_size)
{
    return ladder[choose_rung(features, environment, reason, reason_size)].level;
}

static void explain_rung(size_t i)
{
    char *text = rung_reasons[i];
    const size_t size = sizeof rung_reasons[i];
    const unsigned missing = ladder[i].needs & ~seen_features;

    if (!ladder[i].fill) {
        snprintf(text, size, "not part of this build");
    } else if (missing) {
        size_t used = (size_t)snprintf(text, size, "missing:");
        for (size_t f = 0; f < FEATURES && used < size; f++) {
            if (missing >> f & 1) {
                used += (size_t)snprintf(text + used, size - used, " %s", feature_names[f]);
            }
        }
    } else {
        snprintf(text, size, i > highest ? "above what ATTNRES_LEVEL allows" : "usable");
    }
}

static void initialise(void)
{
    seen_features = attnres_cpu_detect();
    highest =
        choose_rung(seen_features, getenv("ATTNRES_LEVEL"), first_reason, sizeof first_reason);
    for (size_t i = 0; i < RUNGS; i++) {
        attnres_table_fill(&tables[i], ladder[i].level);
        explain_rung(i);
    }
    atomic_store_explicit(&current_reason, first_reason, memory_order_release);
    atomic_store_explicit(&current, &tables[highest], memory_order_release);
}

const struct attnres_table *attnres_dispatch(void)
{
    const struct attnres_table *table = atomic_load_explicit(&current, memory_order_acquire);
    if (!table) {
        pthread_once(&once, initialise);
        table = atomic_load_explicit(&current, memory_order_acquire);
    }
    return table;
}

attnres_level attnres_current_level(void)
{
    return ladder[attnres_dispatch() - tables].level;
}

attnres_status attnres_set_level(attnres_level level)
{
    attnres_dispatch();
    const size_t i = rung_of(level);
    if (i > highest || !rung_runs(&ladder[i], seen_features)) {
        return ATTNRES_ERROR_LEVEL;
    }
    atomic_store_explicit(&current_reason, i == highest ? first_reason : "set by attnres_set_level",
                          memory_order_release);
    atomic_store_explicit(&current, &tables[i], memory_order_release);
    return ATTNRES_OK;
}

const char *attnres_level_reason(void)
{
    attnres_dispatch();
    return atomic_load_explicit(&current_reason, memory_order_acquire);
}

const char *attnres_level_name(attnres_level level)
{
    return (size_t)level < LEVELS ? level_names[level] : "unknown";
}

attnres_status attnres_level_from_name(const char *name, attnres_level *level)
{
    for (size_t i = 0; name && level && i < LEVELS; i++) {
        if (strcmp(name, level_names[i]) == 0) {
            *level = (attnres_level)i;
            return ATTNRES_OK;
        }
    }
    return ATTNRES_ERROR_LEVEL;
}

size_t attnres_level_reports(attnres_level_report *list, size_t capacity)
{
    attnres_dispatch();
    for (size_t i = 0; list && i < RUNGS && i < capacity; i++) {
        list[i] = (attnres_level_report){ladder[i].level, ladder[i].fill != NULL,
                                         i <= highest && rung_runs(&ladder[i], seen_features),
                                         rung_reasons[i]};
    }
    return RUNGS;
}

size_t attnres_features(attnres_feature *list, size_t capacity)
{
    attnres_dispatch();
    for (size_t i = 0; list && i < FEATURES && i < capacity; i++) {
        list[i] = (attnres_feature){feature_names[i], (int)(seen_features >> i & 1)};
    }
    return FEATURES;
}
