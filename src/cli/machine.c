#define _GNU_SOURCE 1

#include "machine.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

const char *attnres_cli_architecture(void)
{
#if defined(__x86_64__)
    return "x86_64";
#elif defined(__i386__)
    return "x86";
#elif defined(__aarch64__)
    return "aarch64";
#elif defined(__arm__)
    return "arm";
#elif defined(__riscv)
    return "riscv";
#else
    return "unknown";
#endif
}

/* ---- Name ------------------------------------------------------------------------------ */

/* Copies text without white space at its ends and with single spaces inside. */
static void copy_trimmed(const char *text, char *name, size_t capacity)
{
    size_t used = 0;
    for (; *text != '\0' && used + 1 < capacity; text++) {
        int space = isspace((unsigned char)*text);
        if (!space) {
            name[used++] = *text;
        } else if (used > 0 && name[used - 1] != ' ') {
            name[used++] = ' ';
        }
    }
    while (used > 0 && name[used - 1] == ' ') {
        used--;
    }
    name[used] = '\0';
}

#if defined(__x86_64__) || defined(__i386__)
/* The brand string: 48 bytes in three leaves. Empty if the CPU has none. */
static void processor_brand(char *name, size_t capacity)
{
    unsigned words[13] = {0};
    if ((unsigned)__get_cpuid_max(0x80000000u, NULL) >= 0x80000004u) {
        for (unsigned leaf = 0; leaf < 3; leaf++) {
            unsigned *word = words + leaf * 4;
            __cpuid(0x80000002u + leaf, word[0], word[1], word[2], word[3]);
        }
    }
    char text[sizeof words];
    memcpy(text, words, sizeof text);
    copy_trimmed(text, name, capacity);
}
#else
static void processor_brand(char *name, size_t capacity)
{
    (void)capacity;
    name[0] = '\0';
}
#endif

/* The value of the first line "key : value" of /proc/cpuinfo. Empty if there is none. */
static void cpuinfo_value(const char *key, char *value, size_t capacity)
{
    char line[512];
    size_t length = strlen(key);
    FILE *stream = fopen("/proc/cpuinfo", "r");
    value[0] = '\0';
    if (stream == NULL) {
        return;
    }
    while (value[0] == '\0' && fgets(line, sizeof line, stream) != NULL) {
        const char *colon = strchr(line, ':');
        if (colon != NULL && strncmp(line, key, length) == 0 &&
            (line[length] == ' ' || line[length] == '\t' || line[length] == ':')) {
            copy_trimmed(colon + 1, value, capacity);
        }
    }
    fclose(stream);
}

void attnres_cli_cpu_name(char *name, size_t capacity)
{
    char implementer[16];
    char part[16];
    processor_brand(name, capacity);
    if (name[0] == '\0') {
        cpuinfo_value("model name", name, capacity);
    }
    if (name[0] == '\0') {
        /* Arm kernels give numbers, not names. */
        cpuinfo_value("CPU implementer", implementer, sizeof implementer);
        cpuinfo_value("CPU part", part, sizeof part);
        if (implementer[0] != '\0' && part[0] != '\0') {
            snprintf(name, capacity, "implementer %s, part %s", implementer, part);
        }
    }
    if (name[0] == '\0') {
        snprintf(name, capacity, "unknown");
    }
}

/* ---- Caches ---------------------------------------------------------------------------- */

static int read_cache_file(unsigned index, const char *file, char *text, size_t capacity)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/%s", index, file);
    FILE *stream = fopen(path, "r");
    if (stream == NULL) {
        return -1;
    }
    int found = fgets(text, (int)capacity, stream) != NULL;
    fclose(stream);
    return found ? 0 : -1;
}

static const char *cache_type(const char *text)
{
    if (strncmp(text, "Data", 4) == 0) {
        return "data";
    }
    return strncmp(text, "Instruction", 11) == 0 ? "instruction" : "unified";
}

static int read_cache(unsigned index, attnres_cli_cache *cache)
{
    char level[32];
    char type[32];
    char size[32];
    if (read_cache_file(index, "level", level, sizeof level) != 0 ||
        read_cache_file(index, "type", type, sizeof type) != 0 ||
        read_cache_file(index, "size", size, sizeof size) != 0) {
        return -1;
    }
    char *unit = NULL;
    unsigned long long bytes = strtoull(size, &unit, 10);
    unsigned shift = *unit == 'K' ? 10 : *unit == 'M' ? 20 : 0;
    cache->level = atoi(level);
    cache->type = cache_type(type);
    cache->bytes = (size_t)(bytes << shift);
    return 0;
}

/* What the C library knows, where sysfs says nothing (some containers and emulators). */
static size_t configured_caches(attnres_cli_cache *list, size_t capacity)
{
    size_t count = 0;
#if defined(_SC_LEVEL1_DCACHE_SIZE) && defined(_SC_LEVEL2_CACHE_SIZE) &&                           \
    defined(_SC_LEVEL3_CACHE_SIZE)
    static const struct {
        int name;
        int level;
        const char *type;
    } known[] = {
        {_SC_LEVEL1_DCACHE_SIZE, 1, "data"},
        {_SC_LEVEL2_CACHE_SIZE, 2, "unified"},
        {_SC_LEVEL3_CACHE_SIZE, 3, "unified"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0] && count < capacity; i++) {
        long bytes = sysconf(known[i].name);
        if (bytes > 0) {
            list[count++] = (attnres_cli_cache){
                .level = known[i].level, .type = known[i].type, .bytes = (size_t)bytes};
        }
    }
#else
    (void)list;
    (void)capacity;
#endif
    return count;
}

size_t attnres_cli_caches(attnres_cli_cache *list, size_t capacity)
{
    size_t count = 0;
    for (unsigned index = 0; count < capacity && read_cache(index, &list[count]) == 0; index++) {
        count++;
    }
    return count > 0 ? count : configured_caches(list, capacity);
}
