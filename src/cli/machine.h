/* What the operating system tells about the machine, for `attnres info`. */
#ifndef ATTNRES_CLI_MACHINE_H
#define ATTNRES_CLI_MACHINE_H

#include <stddef.h>

/* "x86_64", "aarch64", ...: what this program was compiled for. */
const char *attnres_cli_architecture(void);

/* The CPU's name as it or the system gives it, or "unknown". */
void attnres_cli_cpu_name(char *name, size_t capacity);

typedef struct attnres_cli_cache {
    int level;
    const char *type; /* "data", "instruction", "unified" */
    size_t bytes;
} attnres_cli_cache;

/* The caches of CPU 0. Fills at most `capacity` and returns how many were filled; 0: unknown. */
size_t attnres_cli_caches(attnres_cli_cache *list, size_t capacity);

#endif
