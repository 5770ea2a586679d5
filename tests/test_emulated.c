/* The lanes of the other architecture, compiled through SIMDe, against the scalar kernels: every
 * kernel, every dtype, widths around every group size, bit for bit. */
#include "suites.h"

#include "dispatch.h"
#include "kernels.h"

#include <attnres.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef ATTNRES_TESTS_EMULATED

ATTNRES_DTYPES(ATTNRES_PROTOTYPES, emulated)

#define ROWS 7
#define QUERIES 3
#define MOST 300 /* columns */

#define EMULATED_ONE(kernel, dtype, level, arguments)                                              \
    kernels.kernel = attnres_##kernel##_##dtype##_emulated;
#define EMULATED_KERNELS(type)                                                                     \
    do {                                                                                           \
        ATTNRES_KERNELS(EMULATED_ONE, type, emulated)                                              \
    } while (0)

static struct attnres_kernels emulated_kernels(attnres_dtype dtype)
{
    struct attnres_kernels kernels;
    switch (dtype) {
    case ATTNRES_F64:
        EMULATED_KERNELS(f64);
        break;
    case ATTNRES_F16:
        EMULATED_KERNELS(f16);
        break;
    case ATTNRES_BF16:
        EMULATED_KERNELS(bf16);
        break;
    default:
        EMULATED_KERNELS(f32);
        break;
    }
    return kernels;
}

/* Inputs of one comparison, and what a set of kernels makes of them. */
struct work {
    attnres_dtype dtype;
    size_t width;
    double rows[ROWS][MOST], queries[QUERIES][MOST]; /* of the dtype, and its accumulators */
    double steps[2 * ROWS];
};
struct outcome {
    double squares[ROWS], scores[ROWS], dots[QUERIES * ROWS], lanes[16];
    double total[MOST], sum[MOST], mixed[MOST], normed[MOST], folded[MOST], normal[MOST];
};

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 16;
}

/* Numbers about 1, in storage of the dtype; every 16th has many zero bits, for ties. */
static void fill(attnres_dtype dtype, uint64_t *state, void *data, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t random = next(state), keep = random % 16 ? ~(uint64_t)0 : 7;
        const double number = (double)((random >> 4 & 0xfffff & keep) + 1) * 0x1p-20;
        const double value = random & 1 ? -number : number;
        const float single = (float)value;
        uint32_t bits;
        memcpy(&bits, &single, sizeof bits);
        const uint16_t half =
            (uint16_t)(dtype == ATTNRES_BF16 ? bits >> 16
                                             : (random & 0x8000) | 0x3000 | (random >> 8 & 0x7ff));
        if (dtype == ATTNRES_F64) {
            ((double *)data)[i] = value;
        } else if (dtype == ATTNRES_F32) {
            ((float *)data)[i] = single;
        } else {
            ((uint16_t *)data)[i] = half;
        }
    }
}

static void run(const struct attnres_kernels *kernels, const struct work *work, struct outcome *out)
{
    const void *rows[ROWS], *queries[QUERIES];
    const size_t width = work->width;
    const int is_double = work->dtype == ATTNRES_F64;

    for (int r = 0; r < ROWS; r++) {
        rows[r] = work->rows[r];
    }
    for (int k = 0; k < QUERIES; k++) {
        queries[k] = work->queries[k];
    }
    float steps[2 * ROWS];
    for (int s = 0; s < 2 * ROWS; s++) {
        steps[s] = (float)work->steps[s];
    }
    const void *packed = is_double ? (const void *)work->steps : (const void *)steps;
    memset(out, 0, sizeof *out);
    kernels->score(rows, ROWS, queries[0], width, 0, out->squares, out->scores);
    kernels->dots(rows, ROWS, queries, QUERIES, width, out->dots);
    kernels->sum(rows, ROWS, width, queries[1], out->total, out->sum, NULL);
    kernels->fold(rows, packed, ROWS, queries[2], out->folded, width);
    const struct attnres_mix mix = {.rows = rows,
                                    .steps = packed,
                                    .count = ROWS,
                                    .factor = 0.375,
                                    .round = 1,
                                    .out = out->mixed,
                                    .squares = out->lanes,
                                    .normed = out->normed,
                                    .norm_factor = 1.25,
                                    .gain = queries[1]};
    kernels->mix(&mix, width);
    kernels->normalize(rows[1], 0.75, queries[2], width, out->normal);
}

/* f64 last: SIMDe makes _mm256_fmadd_pd of two operations on AArch64, which rounds twice. */
static const attnres_dtype dtypes[] = {ATTNRES_F32, ATTNRES_F16, ATTNRES_BF16, ATTNRES_F64};
#if defined(__aarch64__)
#define COMPARED 3
#else
#define COMPARED 4
#endif

START_TEST(agrees_with_scalar)
{
    static struct work work;
    static struct outcome expected, actual;
    uint64_t state = 7;
    struct attnres_table scalar;

    work.dtype = dtypes[_i];
    attnres_table_fill(&scalar, ATTNRES_LEVEL_SCALAR);
    const struct attnres_kernels emulated = emulated_kernels(work.dtype);
    for (work.width = 1; work.width <= MOST; work.width += work.width < 132 ? 1 : 7) {
        for (int r = 0; r < ROWS; r++) {
            fill(work.dtype, &state, work.rows[r], work.width);
            work.steps[2 * r] = r % 3 == 2 ? 0.625 + 0.01 * r : 1;
            work.steps[2 * r + 1] = r % 3 == 2 ? 1 : 0.3 + 0.07 * r;
        }
        for (int k = 0; k < QUERIES; k++) {
            fill(attnres_dtype_accumulator(work.dtype), &state, work.queries[k], work.width);
        }
        run(&scalar.of[work.dtype], &work, &expected);
        run(&emulated, &work, &actual);
        ck_assert_msg(memcmp(&expected, &actual, sizeof expected) == 0, "dtype %d, width %zu",
                      (int)work.dtype, work.width);
    }
}
END_TEST

/* The emulation is compiled for what this machine's best level needs. */
static int machine_runs_it(void)
{
#if defined(__x86_64__)
    attnres_level_report reports[8];
    const size_t count = attnres_level_reports(reports, 8);
    for (size_t i = 0; i < count; i++) {
        if (reports[i].level == ATTNRES_LEVEL_AVX2) {
            return reports[i].usable;
        }
    }
    return 0;
#else
    return 1;
#endif
}

#endif

Suite *emulated_suite(void)
{
    Suite *suite = suite_create("emulated");
#ifdef ATTNRES_TESTS_EMULATED
    TCase *tcase = tcase_create(ATTNRES_TESTS_EMULATED " through SIMDe");
    if (machine_runs_it()) {
        tcase_add_loop_test(tcase, agrees_with_scalar, 0, COMPARED);
        if (COMPARED < 4) {
            printf(
                "skipped: f64 through SIMDe, whose fused multiply-add of doubles is none here\n");
        }
    } else {
        printf("skipped: " ATTNRES_TESTS_EMULATED
               " lanes through SIMDe need avx2 here, which this machine does not have\n");
    }
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
#else
    printf("skipped: the other architecture's lanes; SIMDe was not there when this was built\n");
#endif
    return suite;
}
