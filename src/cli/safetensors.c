#define _POSIX_C_SOURCE 200809L

#include "safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Elements are taken as they lie in the file, in both directions. */
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors files are little endian; this program runs on little-endian machines only"
#endif

typedef struct format_dtype {
    const char *name;
    unsigned bits;
    attnres_dtype dtype;
} format_dtype;

#define NOT_OURS ((attnres_dtype)0)

/* All dtypes of the format. Files may hold other tensors than those that are asked for. */
static const format_dtype format_dtypes[] = {
    {"F64", 64, ATTNRES_F64},     {"F32", 32, ATTNRES_F32}, {"F16", 16, ATTNRES_F16},
    {"BF16", 16, ATTNRES_BF16},   {"BOOL", 8, NOT_OURS},    {"U8", 8, NOT_OURS},
    {"I8", 8, NOT_OURS},          {"U16", 16, NOT_OURS},    {"I16", 16, NOT_OURS},
    {"U32", 32, NOT_OURS},        {"I32", 32, NOT_OURS},    {"U64", 64, NOT_OURS},
    {"I64", 64, NOT_OURS},        {"C64", 64, NOT_OURS},    {"F8_E5M2", 8, NOT_OURS},
    {"F8_E4M3", 8, NOT_OURS},     {"F8_E8M0", 8, NOT_OURS}, {"F8_E5M2FNUZ", 8, NOT_OURS},
    {"F8_E4M3FNUZ", 8, NOT_OURS}, {"F6_E2M3", 6, NOT_OURS}, {"F6_E3M2", 6, NOT_OURS},
    {"F4", 4, NOT_OURS},
};

static const format_dtype *find_dtype(const char *name)
{
    for (size_t i = 0; i < sizeof format_dtypes / sizeof format_dtypes[0]; i++) {
        if (strcmp(format_dtypes[i].name, name) == 0) {
            return &format_dtypes[i];
        }
    }
    return NULL;
}

const char *attnres_cli_dtype_name(attnres_dtype dtype)
{
    for (size_t i = 0; i < sizeof format_dtypes / sizeof format_dtypes[0]; i++) {
        if (dtype != NOT_OURS && format_dtypes[i].dtype == dtype) {
            return format_dtypes[i].name;
        }
    }
    return NULL;
}

static int read_at(int descriptor, uint64_t offset, void *data, size_t bytes,
                   attnres_cli_message *message)
{
    const size_t most = (size_t)1 << 30; /* Linux reads at most 2 GiB per call */
    unsigned char *target = data;
    while (bytes > 0) {
        ssize_t got = pread(descriptor, target, bytes < most ? bytes : most, (off_t)offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return attnres_cli_explain(message, "cannot read: %s", strerror(errno));
        }
        if (got == 0) {
            return attnres_cli_explain(message, "the file became shorter while it was read");
        }
        target += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return 0;
}

/* A whole number that is not negative. Not 2.0 or 1e3: the format wants integers. */
static int whole_number(const json_t *value, uint64_t *number)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return -1;
    }
    *number = (uint64_t)json_integer_value(value);
    return 0;
}

static int parse_shape(attnres_cli_tensor *tensor, const json_t *value, size_t *elements,
                       attnres_cli_message *message)
{
    if (!json_is_array(value)) {
        return attnres_cli_explain(message, "tensor '%.100s' has no shape that is a list",
                                   tensor->name);
    }
    tensor->rank = json_array_size(value);
    tensor->shape = calloc(tensor->rank > 0 ? tensor->rank : 1, sizeof *tensor->shape);
    if (tensor->shape == NULL) {
        return attnres_cli_explain(message, "out of memory");
    }
    *elements = 1;
    for (size_t i = 0; i < tensor->rank; i++) {
        uint64_t size = 0;
        if (whole_number(json_array_get(value, i), &size) != 0) {
            return attnres_cli_explain(
                message, "tensor '%.100s' has a shape entry that is not a whole number >= 0",
                tensor->name);
        }
        if (size > SIZE_MAX || attnres_cli_multiply(*elements, (size_t)size, elements) != 0) {
            return attnres_cli_explain(message, "tensor '%.100s' has a shape that overflows",
                                       tensor->name);
        }
        tensor->shape[i] = (size_t)size;
    }
    return 0;
}

static int parse_offsets(attnres_cli_tensor *tensor, const json_t *value, uint64_t data_bytes,
                         uint64_t *bytes, attnres_cli_message *message)
{
    uint64_t begin = 0;
    uint64_t end = 0;
    if (!json_is_array(value) || json_array_size(value) != 2 ||
        whole_number(json_array_get(value, 0), &begin) != 0 ||
        whole_number(json_array_get(value, 1), &end) != 0) {
        return attnres_cli_explain(
            message, "tensor '%.100s' has no data_offsets of two whole numbers >= 0", tensor->name);
    }
    if (begin > end) {
        return attnres_cli_explain(message, "tensor '%.100s' ends before it begins", tensor->name);
    }
    if (end > data_bytes) {
        return attnres_cli_explain(message, "tensor '%.100s' reaches beyond the end of the file",
                                   tensor->name);
    }
    tensor->begin = begin;
    *bytes = end - begin;
    return 0;
}

/* Fills in one tensor. What it has allocated by then is the caller's to free, also after -1. */
static int parse_tensor(attnres_cli_tensor *tensor, const char *name, const json_t *entry,
                        uint64_t data_bytes, attnres_cli_message *message)
{
    tensor->name = strdup(name);
    if (tensor->name == NULL) {
        return attnres_cli_explain(message, "out of memory");
    }
    const json_t *dtype_value = json_object_get(entry, "dtype");
    if (!json_is_string(dtype_value)) {
        return attnres_cli_explain(message, "tensor '%.100s' has no dtype that is a string", name);
    }
    const format_dtype *dtype = find_dtype(json_string_value(dtype_value));
    if (dtype == NULL) {
        return attnres_cli_explain(message, "tensor '%.100s' has the unknown dtype '%.40s'", name,
                                   json_string_value(dtype_value));
    }
    tensor->dtype_name = dtype->name;
    tensor->dtype = dtype->dtype;

    size_t elements = 0;
    uint64_t stored = 0;
    if (parse_shape(tensor, json_object_get(entry, "shape"), &elements, message) != 0 ||
        parse_offsets(tensor, json_object_get(entry, "data_offsets"), data_bytes, &stored,
                      message) != 0) {
        return -1;
    }
    if (elements > UINT64_MAX / dtype->bits) {
        return attnres_cli_explain(message, "tensor '%.100s' has a shape that overflows", name);
    }
    uint64_t bits = (uint64_t)elements * dtype->bits;
    if (bits % 8 != 0 || bits / 8 != stored || stored > SIZE_MAX) {
        return attnres_cli_explain(
            message, "tensor '%.100s' holds %llu bytes, which its shape and dtype do not give",
            name, (unsigned long long)stored);
    }
    tensor->bytes = (size_t)stored;
    return 0;
}

static int check_metadata(json_t *metadata, attnres_cli_message *message)
{
    const char *key = NULL;
    json_t *value = NULL;
    if (!json_is_object(metadata)) {
        return attnres_cli_explain(message, "__metadata__ is not an object");
    }
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value)) {
            return attnres_cli_explain(message, "__metadata__ entry '%.100s' is not a string", key);
        }
    }
    return 0;
}

static int by_place(const void *left, const void *right)
{
    const attnres_cli_tensor *a = left;
    const attnres_cli_tensor *b = right;
    if (a->begin != b->begin) {
        return a->begin < b->begin ? -1 : 1;
    }
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* The format allows neither overlaps nor holes: every byte belongs to one tensor. */
static int check_places(attnres_cli_file *file, uint64_t data_bytes, attnres_cli_message *message)
{
    uint64_t end = 0;
    qsort(file->tensors, file->count, sizeof *file->tensors, by_place);
    for (size_t i = 0; i < file->count; i++) {
        const attnres_cli_tensor *tensor = &file->tensors[i];
        if (tensor->begin < end) {
            return attnres_cli_explain(message, "tensor '%.100s' overlaps tensor '%.100s'",
                                       tensor->name, file->tensors[i - 1].name);
        }
        if (tensor->begin > end) {
            return attnres_cli_explain(message, "there is a hole in front of tensor '%.100s'",
                                       tensor->name);
        }
        end = tensor->begin + tensor->bytes;
    }
    if (end != data_bytes) {
        return attnres_cli_explain(message, "%llu bytes at the end belong to no tensor",
                                   (unsigned long long)(data_bytes - end));
    }
    return 0;
}

static int parse_tensors(attnres_cli_file *file, json_t *root, uint64_t data_bytes,
                         attnres_cli_message *message)
{
    const char *name = NULL;
    json_t *entry = NULL;
    size_t capacity = json_object_size(root);
    file->tensors = calloc(capacity > 0 ? capacity : 1, sizeof *file->tensors);
    if (file->tensors == NULL) {
        return attnres_cli_explain(message, "out of memory");
    }
    json_object_foreach(root, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0) {
            if (check_metadata(entry, message) != 0) {
                return -1;
            }
            continue;
        }
        if (!json_is_object(entry)) {
            return attnres_cli_explain(message, "header entry '%.100s' is not an object", name);
        }
        attnres_cli_tensor *tensor = &file->tensors[file->count++];
        if (parse_tensor(tensor, name, entry, data_bytes, message) != 0) {
            return -1;
        }
    }
    return check_places(file, data_bytes, message);
}

static int parse_header(attnres_cli_file *file, const char *text, size_t length,
                        uint64_t data_bytes, attnres_cli_message *message)
{
    if (length == 0 || text[0] != '{') {
        return attnres_cli_explain(message, "not a safetensors file: the header is not an object");
    }
    json_error_t error;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) {
        return attnres_cli_explain(message, "the header is not valid JSON: %s", error.text);
    }
    int result = parse_tensors(file, root, data_bytes, message);
    json_decref(root);
    return result;
}

static int read_header(attnres_cli_file *file, attnres_cli_message *message)
{
    struct stat status;
    if (fstat(file->descriptor, &status) != 0) {
        return attnres_cli_explain(message, "cannot read: %s", strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return attnres_cli_explain(message, "not a regular file");
    }
    uint64_t file_bytes = (uint64_t)status.st_size;
    unsigned char prefix[8];
    if (file_bytes < sizeof prefix) {
        return attnres_cli_explain(message, "not a safetensors file: shorter than 8 bytes");
    }
    if (read_at(file->descriptor, 0, prefix, sizeof prefix, message) != 0) {
        return -1;
    }
    uint64_t length = 0;
    for (size_t i = sizeof prefix; i-- > 0;) {
        length = length << 8 | prefix[i];
    }
    if (length > file_bytes - sizeof prefix) {
        return attnres_cli_explain(message, "the header's length reaches beyond the file's end");
    }
    if (length > ATTNRES_CLI_HEADER_MAX) {
        return attnres_cli_explain(message, "the header is longer than %d bytes",
                                   ATTNRES_CLI_HEADER_MAX);
    }
    char *text = malloc(length > 0 ? (size_t)length : 1);
    if (text == NULL) {
        return attnres_cli_explain(message, "out of memory");
    }
    file->data_start = sizeof prefix + length;
    int result = read_at(file->descriptor, sizeof prefix, text, (size_t)length, message);
    if (result == 0) {
        result = parse_header(file, text, (size_t)length, file_bytes - file->data_start, message);
    }
    free(text);
    return result;
}

int attnres_cli_file_open(const char *path, attnres_cli_file *file, attnres_cli_message *message)
{
    *file = (attnres_cli_file){0};
    /* Not blocking: opening a named pipe would wait for a writer. */
    file->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->descriptor < 0) {
        return attnres_cli_explain(message, "cannot open: %s", strerror(errno));
    }
    if (read_header(file, message) != 0) {
        attnres_cli_file_close(file);
        return -1;
    }
    return 0;
}

void attnres_cli_file_close(attnres_cli_file *file)
{
    for (size_t i = 0; i < file->count; i++) {
        free(file->tensors[i].name);
        free(file->tensors[i].shape);
    }
    free(file->tensors);
    if (file->descriptor >= 0) {
        close(file->descriptor);
    }
    *file = (attnres_cli_file){.descriptor = -1};
}

const attnres_cli_tensor *attnres_cli_file_find(const attnres_cli_file *file, const char *name)
{
    for (size_t i = 0; i < file->count; i++) {
        if (strcmp(file->tensors[i].name, name) == 0) {
            return &file->tensors[i];
        }
    }
    return NULL;
}

int attnres_cli_file_load(const attnres_cli_file *file, const attnres_cli_tensor *tensor,
                          void **data, attnres_cli_message *message)
{
    void *loaded = malloc(tensor->bytes > 0 ? tensor->bytes : 1);
    if (loaded == NULL) {
        return attnres_cli_explain(message, "out of memory for tensor '%.100s' (%zu bytes)",
                                   tensor->name, tensor->bytes);
    }
    if (read_at(file->descriptor, file->data_start + tensor->begin, loaded, tensor->bytes,
                message) != 0) {
        free(loaded);
        return -1;
    }
    *data = loaded;
    return 0;
}
