#define _POSIX_C_SOURCE 200809L

#include "timing.h"

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define REPETITIONS 9

double attnres_cli_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double attnres_cli_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

static uint64_t read_all(const uint64_t *data, size_t words)
{
    uint64_t sum[8] = {0};
    for (size_t i = 0; i + 8 <= words; i += 8) {
        for (int k = 0; k < 8; k++) {
            sum[k] |= data[i + (size_t)k];
        }
    }
    return sum[0] | sum[1] | sum[2] | sum[3] | sum[4] | sum[5] | sum[6] | sum[7];
}

double attnres_cli_read_rate(size_t bytes)
{
    const size_t words = bytes / sizeof(uint64_t);
    const size_t sweeps = 1 + ((size_t)1 << 25) / (bytes + 1);
    uint64_t *data = malloc(bytes + sizeof *data);
    volatile uint64_t sink = 0;
    double rates[REPETITIONS];

    if (data == NULL) {
        return 0;
    }
    for (size_t i = 0; i < words; i++) {
        data[i] = i | 1;
    }
    for (int repetition = 0; repetition < REPETITIONS; repetition++) {
        const double begin = attnres_cli_now();
        for (size_t sweep = 0; sweep < sweeps; sweep++) {
            data[0] = sweep; /* so that no sweep can be left out */
            sink = sink | read_all(data, words);
        }
        rates[repetition] = (double)(sweeps * bytes) / (attnres_cli_now() - begin);
    }
    free(data);
    return attnres_cli_median(rates, REPETITIONS);
}
