#define _DEFAULT_SOURCE

#include "buffer.h"

#include <check.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned char pattern(size_t i)
{
    return (unsigned char)(0xa5 ^ i * 11);
}

void buffer_open(buffer *memory, size_t capacity)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    memory->capacity = (capacity + page - 1) / page * page;
    memory->map_bytes = memory->capacity + 2 * page;
    memory->map = mmap(NULL, memory->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_msg(memory->map != MAP_FAILED, "no memory for a buffer of %zu bytes", capacity);
    memory->pages = memory->map + page;
    ck_assert_int_eq(mprotect(memory->pages, memory->capacity, PROT_READ | PROT_WRITE), 0);
    memory->data = memory->pages;
    memory->bytes = 0;
}

void buffer_close(buffer *memory)
{
    ck_assert_int_eq(munmap(memory->map, memory->map_bytes), 0);
}

void *buffer_array(buffer *memory, buffer_place place, size_t gap, size_t bytes)
{
    ck_assert(bytes + gap <= memory->capacity);
    for (size_t i = 0; i < memory->capacity; i++) {
        memory->pages[i] = pattern(i);
    }
    memory->data = place == BUFFER_AT_START ? memory->pages + gap
                                            : memory->pages + memory->capacity - bytes - gap;
    memory->bytes = bytes;
    return memory->data;
}

int buffer_is_untouched(const buffer *memory, int all)
{
    const size_t begin = (size_t)(memory->data - memory->pages);
    for (size_t i = 0; i < memory->capacity; i++) {
        if (i == begin && !all) {
            i += memory->bytes;
            if (i >= memory->capacity) {
                break;
            }
        }
        if (memory->pages[i] != pattern(i)) {
            return 0;
        }
    }
    return 1;
}
