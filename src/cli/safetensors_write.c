#define _XOPEN_SOURCE 700

#include "safetensors.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The header ------------------------------------------------------------------------ */

static int output_bytes(const attnres_cli_output *output, size_t *bytes)
{
    *bytes = attnres_dtype_size(output->dtype);
    for (size_t i = 0; i < output->rank; i++) {
        if (attnres_cli_multiply(*bytes, output->shape[i], bytes) != 0) {
            return -1;
        }
    }
    return 0;
}

/* The header's entry for one tensor, or NULL. `begin` and `end` are known to fit. */
static json_t *header_entry(const attnres_cli_output *output, size_t begin, size_t end)
{
    json_t *shape = json_array();
    for (size_t i = 0; i < output->rank; i++) {
        if (json_array_append_new(shape, json_integer((json_int_t)output->shape[i])) != 0) {
            json_decref(shape);
            return NULL;
        }
    }
    /* json_pack takes `shape` over, also when it fails. */
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", attnres_cli_dtype_name(output->dtype),
                     "shape", shape, "data_offsets", (json_int_t)begin, (json_int_t)end);
}

static int add_entries(json_t *root, const attnres_cli_output *outputs, size_t count,
                       attnres_cli_message *message)
{
    size_t begin = 0;
    for (size_t i = 0; i < count; i++) {
        const attnres_cli_output *output = &outputs[i];
        size_t bytes = 0;
        if (attnres_cli_dtype_name(output->dtype) == NULL) {
            return attnres_cli_explain(message, "tensor '%.100s' has an invalid dtype",
                                       output->name);
        }
        if (json_object_get(root, output->name) != NULL ||
            strcmp(output->name, "__metadata__") == 0) {
            return attnres_cli_explain(message, "two tensors or more are named '%.100s'",
                                       output->name);
        }
        if (output_bytes(output, &bytes) != 0 || bytes > (size_t)PTRDIFF_MAX - begin) {
            return attnres_cli_explain(message, "tensor '%.100s' has a shape that overflows",
                                       output->name);
        }
        json_t *entry = header_entry(output, begin, begin + bytes);
        if (json_object_set_new(root, output->name, entry) != 0) {
            return attnres_cli_explain(message, "cannot describe tensor '%.100s'", output->name);
        }
        begin += bytes;
    }
    return 0;
}

/* The first bytes of the file: length, JSON, spaces up to a multiple of 8. *prefix is the
 * caller's to free. */
static int build_prefix(const attnres_cli_output *outputs, size_t count, unsigned char **prefix,
                        size_t *prefix_bytes, attnres_cli_message *message)
{
    json_t *root = json_object();
    if (root == NULL) {
        return attnres_cli_explain(message, "out of memory");
    }
    if (add_entries(root, outputs, count, message) != 0) {
        json_decref(root);
        return -1;
    }
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    size_t text_bytes = text != NULL ? strlen(text) : 0;
    size_t padded = (text_bytes + 7) / 8 * 8;
    unsigned char *result = text != NULL ? malloc(8 + padded) : NULL;
    if (result == NULL) {
        free(text);
        return attnres_cli_explain(message, "out of memory");
    }
    for (unsigned i = 0; i < 8; i++) {
        result[i] = (unsigned char)((uint64_t)padded >> (8 * i) & 0xff);
    }
    memcpy(result + 8, text, text_bytes);
    memset(result + 8 + text_bytes, ' ', padded - text_bytes);
    free(text);
    *prefix = result;
    *prefix_bytes = 8 + padded;
    return 0;
}

/* ---- The file -------------------------------------------------------------------------- */

/* Where the file is to be, links followed, and which access rights it gets. NULL if something
 * other than a regular file is there: renaming over a device or a directory would harm it. */
static char *resolve_target(const char *path, mode_t *mode, attnres_cli_message *message)
{
    struct stat status;
    char *target = NULL;
    if (lstat(path, &status) != 0 && errno == ENOENT) {
        mode_t mask = umask(0);
        umask(mask);
        *mode = 0666 & ~mask;
        target = strdup(path);
    } else {
        target = realpath(path, NULL);
        if (target != NULL && stat(target, &status) == 0) {
            *mode = status.st_mode & 0777;
            if (!S_ISREG(status.st_mode)) {
                attnres_cli_explain(message, "cannot write: %s",
                                    S_ISDIR(status.st_mode) ? "it is a directory"
                                                            : "it is not a regular file");
                free(target);
                return NULL;
            }
        }
    }
    if (target == NULL) {
        attnres_cli_explain(message, "cannot write: %s", strerror(errno));
    }
    return target;
}

/* A template for mkstemp in the target's directory: rename works within one file system only. */
static char *temporary_template(const char *target, attnres_cli_message *message)
{
    static const char name[] = ".attnres-XXXXXX";
    const char *slash = strrchr(target, '/');
    size_t directory = slash != NULL ? (size_t)(slash - target) + 1 : 0;
    char *path = malloc(directory + sizeof name);
    if (path == NULL) {
        attnres_cli_explain(message, "out of memory");
        return NULL;
    }
    memcpy(path, target, directory);
    memcpy(path + directory, name, sizeof name);
    return path;
}

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { ENDING_SIGNALS = sizeof ending_signals / sizeof ending_signals[0] };

/* Holds back the signals that ask the process to end, so that they cannot leave the temporary
 * file behind. Those that are ignored stay ignored. */
static void hold_signals(sigset_t *held, sigset_t *previous)
{
    sigemptyset(held);
    for (size_t i = 0; i < ENDING_SIGNALS; i++) {
        struct sigaction action;
        if (sigaction(ending_signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN) {
            sigaddset(held, ending_signals[i]);
        }
    }
    sigprocmask(SIG_BLOCK, held, previous);
}

static int signal_waits(const sigset_t *held)
{
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    for (size_t i = 0; i < ENDING_SIGNALS; i++) {
        if (sigismember(held, ending_signals[i]) == 1 &&
            sigismember(&pending, ending_signals[i]) == 1) {
            return 1;
        }
    }
    return 0;
}

static int write_all(int descriptor, const void *data, size_t bytes, const sigset_t *held,
                     attnres_cli_message *message)
{
    const size_t most = (size_t)8 << 20; /* looks for signals between pieces of this size */
    const unsigned char *rest = data;
    while (bytes > 0) {
        if (signal_waits(held)) {
            return attnres_cli_explain(message, "cannot write: interrupted");
        }
        ssize_t written = write(descriptor, rest, bytes < most ? bytes : most);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return attnres_cli_explain(message, "cannot write: %s", strerror(errno));
        }
        rest += written;
        bytes -= (size_t)written;
    }
    return 0;
}

typedef struct content {
    const unsigned char *prefix;
    size_t prefix_bytes;
    const attnres_cli_output *outputs;
    size_t count;
} content;

static int write_content(int descriptor, const content *what, const sigset_t *held,
                         attnres_cli_message *message)
{
    if (write_all(descriptor, what->prefix, what->prefix_bytes, held, message) != 0) {
        return -1;
    }
    for (size_t i = 0; i < what->count; i++) {
        size_t bytes = 0;
        output_bytes(&what->outputs[i], &bytes); /* did not overflow in build_prefix */
        if (write_all(descriptor, what->outputs[i].data, bytes, held, message) != 0) {
            return -1;
        }
    }
    return 0;
}

/* Turns the template `temporary` into a file, and that into `target`. */
static int write_and_rename(char *temporary, const char *target, mode_t mode, const content *what,
                            const sigset_t *held, attnres_cli_message *message)
{
    int descriptor = mkstemp(temporary);
    if (descriptor < 0) {
        return attnres_cli_explain(message, "cannot write in its directory: %s", strerror(errno));
    }
    int result = write_content(descriptor, what, held, message);
    if (result == 0 && fchmod(descriptor, mode) != 0) {
        result = attnres_cli_explain(message, "cannot set access rights: %s", strerror(errno));
    }
    if (close(descriptor) != 0 && result == 0) {
        result = attnres_cli_explain(message, "cannot write: %s", strerror(errno));
    }
    if (result == 0 && rename(temporary, target) != 0) {
        result = attnres_cli_explain(message, "cannot rename onto it: %s", strerror(errno));
    }
    if (result != 0) {
        unlink(temporary);
    }
    return result;
}

int attnres_cli_file_write(const char *path, const attnres_cli_output *outputs, size_t count,
                           attnres_cli_message *message)
{
    content what = {.outputs = outputs, .count = count};
    unsigned char *prefix = NULL;
    if (build_prefix(outputs, count, &prefix, &what.prefix_bytes, message) != 0) {
        return -1;
    }
    what.prefix = prefix;
    int result = -1;
    mode_t mode = 0;
    char *target = resolve_target(path, &mode, message);
    char *temporary = target != NULL ? temporary_template(target, message) : NULL;
    if (temporary != NULL) {
        sigset_t held;
        sigset_t previous;
        hold_signals(&held, &previous);
        result = write_and_rename(temporary, target, mode, &what, &held, message);
        sigprocmask(SIG_SETMASK, &previous, NULL);
    }
    free(temporary);
    free(target);
    free(prefix);
    return result;
}
