/* The safetensors format: 8 bytes with the header's length (little endian), the header (a JSON
 * object: tensor name -> dtype, shape, data_offsets), the tensors' bytes without gap or overlap.
 *
 * The reader trusts nothing in a file. Opening reads and checks the whole header against the
 * file's real size; a tensor's data is read when it is asked for. Nothing here prints: functions
 * return 0, or -1 and a message without the file's name. */
#ifndef ATTNRES_CLI_SAFETENSORS_H
#define ATTNRES_CLI_SAFETENSORS_H

#include "text.h"

#include <attnres.h>

#include <stddef.h>
#include <stdint.h>

/* Longer headers are refused, as the format's reference implementation does. */
#define ATTNRES_CLI_HEADER_MAX 100000000

typedef struct attnres_cli_tensor {
    char *name;
    const char *dtype_name; /* "F32", "I64", ...: the format's name */
    attnres_dtype dtype;    /* 0 for those dtypes of the format that attnres does not know */
    size_t rank;            /* 0: a scalar */
    size_t *shape;          /* [rank]; entries may be 0 */
    uint64_t begin;         /* of its data, in bytes from the start of the data section */
    size_t bytes;
} attnres_cli_tensor;

typedef struct attnres_cli_file {
    int descriptor;
    uint64_t data_start;
    attnres_cli_tensor *tensors; /* [count], in the order of their data */
    size_t count;
} attnres_cli_file;

/* Opens a file and checks all of its header. After -1 there is nothing to close. */
int attnres_cli_file_open(const char *path, attnres_cli_file *file, attnres_cli_message *message);

void attnres_cli_file_close(attnres_cli_file *file);

/* The tensor of that name, or NULL. */
const attnres_cli_tensor *attnres_cli_file_find(const attnres_cli_file *file, const char *name);

/* Reads the data of one of the file's tensors. *data is aligned for any element type, never NULL
 * on success, and the caller's to free(). */
int attnres_cli_file_load(const attnres_cli_file *file, const attnres_cli_tensor *tensor,
                          void **data, attnres_cli_message *message);

/* The format's name of one of attnres' dtypes; NULL for a value that is not one. */
const char *attnres_cli_dtype_name(attnres_dtype dtype);

typedef struct attnres_cli_output {
    const char *name;
    attnres_dtype dtype;
    size_t rank;
    const size_t *shape; /* [rank] */
    const void *data;    /* may be NULL if there is no element */
} attnres_cli_output;

/* Writes a file with these tensors, in this order, the data starting at a multiple of 8 bytes.
 *
 * The file appears whole or not at all: it is written beside its final place and renamed. After
 * -1 no temporary file is left and what was at `path` before is untouched. SIGINT, SIGTERM and
 * SIGHUP are held back meanwhile and stop the writing. A symbolic link is followed; what is there
 * and not a regular file is refused. There is no fsync: after a crash of the machine the file may
 * be empty. */
int attnres_cli_file_write(const char *path, const attnres_cli_output *outputs, size_t count,
                           attnres_cli_message *message);

#endif
