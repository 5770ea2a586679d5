#define _XOPEN_SOURCE 700

#include "k3_measure.h"

#include "cli.h"
#include "synthetic.h"
#include "text.h"
#include "timing.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *phase; /* what the progress line says */

static void show_progress(size_t layer, size_t layers)
{
    fprintf(stderr, "\r%s: layer %zu of %zu ", phase, layer, layers);
    if (layer == layers) {
        fprintf(stderr, "\r%40s\r", "");
    }
}

typedef void (*progress_function)(size_t layer, size_t layers);

static progress_function progress_of(const char *name)
{
    phase = name;
    return isatty(STDERR_FILENO) ? show_progress : NULL;
}

/* A range of tokens, run by one thread. */
typedef struct part {
    const attnres_cli_k3_stack *stack;
    size_t first, tokens;
    progress_function progress;
    attnres_cli_k3_result result;
    int status;
    pthread_t thread;
    int started;
} part;

static void *run_part(void *argument)
{
    part *p = argument;
    p->status = attnres_cli_k3_run(p->stack, p->first, p->tokens, 0, 0, p->progress, &p->result);
    return NULL;
}

static int failed(int status)
{
    if (status == -1) {
        return attnres_cli_fail("out of memory");
    }
    return attnres_cli_fail("%s", attnres_status_string((attnres_status)status));
}

/* All tokens at once, in `threads` ranges. *seconds is the longest time a thread spent reading. */
static int prefill(const attnres_cli_k3_stack *stack, size_t tokens, size_t threads,
                   uint64_t *digests, attnres_cli_k3_result *total, double *seconds)
{
    part *parts = calloc(threads, sizeof *parts);
    int status = parts == NULL ? -1 : 0;
    size_t first = 0;

    *seconds = 0;
    for (size_t i = 0; parts && i < threads; i++) {
        part *p = &parts[i];
        *p = (part){.stack = stack,
                    .first = first,
                    .tokens = tokens / threads + (i < tokens % threads),
                    .progress = i == 0 ? progress_of("prefill") : NULL};
        p->result.digests = digests + first;
        first += p->tokens;
        p->started = pthread_create(&p->thread, NULL, run_part, p) == 0;
        if (!p->started) {
            run_part(p);
        }
    }
    for (size_t i = 0; parts && i < threads; i++) {
        part *p = &parts[i];
        if (p->started) {
            pthread_join(p->thread, NULL);
        }
        status = status ? status : p->status;
        total->bytes += p->result.bytes;
        *seconds = p->result.read_seconds > *seconds ? p->result.read_seconds : *seconds;
    }
    free(parts);
    return status;
}

static void print_speed(const char *name, size_t tokens, double bytes, double seconds, double roof)
{
    printf("%s %9.1f us/token, %7.2f MB/token, %6.2f GB/s, %.2f of a plain read's %.1f GB/s\n",
           name, 1e6 * seconds / (double)tokens, 1e-6 * bytes / (double)tokens,
           1e-9 * bytes / seconds, bytes / seconds / roof, 1e-9 * roof);
}

static int verify(const attnres_cli_k3_stack *stack, size_t tokens, int *differs)
{
    attnres_cli_k3_result result = {0};
    const int status = attnres_cli_k3_run(stack, 0, tokens, 1, 0, progress_of("check"), &result);
    if (status != 0) {
        return failed(status);
    }
    printf("%zu reads of %zu source rows per token; against the f64 reference: worst error %.3f "
           "of the bound, bank and prefix %s\n",
           result.reads, result.source_rows, result.worst_error,
           result.state_differences ? "DIFFER" : "equal");
    *differs |= result.worst_error > 1 || result.state_differences > 0;
    return 0;
}

/* Tokens one by one: a runtime's decode. The first one warms up and is run twice. */
static int decode(const attnres_cli_k3_stack *stack, size_t tokens, const uint64_t *digests,
                  int *differs)
{
    const size_t bank_rows = attnres_source_count(stack->layers, stack->block_size) - 1;
    const size_t row = stack->width * attnres_dtype_size(stack->dtype);
    double *seconds = malloc(tokens * sizeof *seconds);
    attnres_cli_k3_result result = {0};
    uint64_t digest = 0;
    int status = seconds == NULL ? -1 : 0;

    for (size_t i = 0; status == 0 && i < tokens + 1; i++) {
        const size_t t = i == 0 ? 0 : i - 1;
        result = (attnres_cli_k3_result){.digests = &digest};
        status = attnres_cli_k3_run(stack, t, 1, 0, 0, NULL, &result);
        seconds[t] = result.read_seconds;
        *differs |= status == 0 && digest != digests[t];
    }
    if (status == 0) {
        print_speed("decode, 1 token at a time ", 1, result.bytes,
                    attnres_cli_median(seconds, tokens),
                    attnres_cli_read_rate((bank_rows + 1) * row));
    }
    free(seconds);
    return status;
}

int attnres_cli_k3_measure(const attnres_cli_k3_stack *stack, size_t tokens, size_t decode_tokens,
                           size_t threads)
{
    const size_t bank_rows = attnres_source_count(stack->layers, stack->block_size) - 1;
    const size_t row = stack->width * attnres_dtype_size(stack->dtype);
    uint64_t *digests = calloc(tokens, sizeof *digests), digest = ATTNRES_CLI_DIGEST_START;
    attnres_cli_k3_result total = {0};
    double seconds = 0;
    int differs = 0, status = digests == NULL ? failed(-1) : verify(stack, tokens, &differs);
    char name[64];

    if (status == 0 && (status = prefill(stack, tokens, threads, digests, &total, &seconds))) {
        status = failed(status);
    }
    if (status == 0 && (status = decode(stack, tokens < decode_tokens ? tokens : decode_tokens,
                                        digests, &differs))) {
        status = failed(status);
    }
    if (status == 0) {
        snprintf(name, sizeof name, "prefill, %zu tokens, %zu thread%s", tokens, threads,
                 threads == 1 ? "" : "s");
        print_speed(name, tokens, total.bytes, seconds,
                    attnres_cli_read_rate(tokens / threads * (bank_rows + 1) * row));
        for (size_t t = 0; t < tokens; t++) {
            for (int byte = 0; byte < 8; byte++) {
                const unsigned char value = (unsigned char)(digests[t] >> (8 * byte));
                digest = attnres_cli_digest(digest, &value, 1);
            }
        }
        printf("digest %016" PRIx64 "%s\n", digest,
               differs ? ", and something above DISAGREES" : "");
        status = differs ? ATTNRES_CLI_EXIT_DIFFERENCE : ATTNRES_CLI_EXIT_OK;
    }
    free(digests);
    return status;
}
