/* `attnres info`: what was seen of the machine, and what the library makes of it.
 *
 * The JSON form is for scripts. Its keys are stable; new ones may be added:
 *
 *     version       string    of the library
 *     architecture  string    what the program was compiled for
 *     cpu           string    the CPU's name, "unknown" if nobody tells
 *     features      object    name -> boolean: CPU features and operating-system state
 *     levels        array     of {name, built, usable, why}, lowest first; strings and booleans
 *     level         string    the level that runs
 *     level_reason  string    why it does
 *     caches        array     of {level, type, bytes} of CPU 0; type is "data", "instruction" or
 *                             "unified"; empty if unknown */
#define _GNU_SOURCE 1

#include "cli.h"
#include "machine.h"
#include "text.h"

#include <attnres.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CACHES_MAX = 16 };

typedef struct findings {
    char cpu_name[128];
    attnres_cli_cache caches[CACHES_MAX];
    size_t cache_count;
    attnres_feature *features;
    size_t feature_count;
    attnres_level_report *levels;
    size_t level_count;
} findings;

static int find_out(findings *found)
{
    found->feature_count = attnres_features(NULL, 0);
    found->level_count = attnres_level_reports(NULL, 0);
    found->features = calloc(found->feature_count + 1, sizeof *found->features);
    found->levels = calloc(found->level_count + 1, sizeof *found->levels);
    if (found->features == NULL || found->levels == NULL) {
        return -1;
    }
    attnres_features(found->features, found->feature_count);
    attnres_level_reports(found->levels, found->level_count);
    attnres_cli_cpu_name(found->cpu_name, sizeof found->cpu_name);
    found->cache_count = attnres_cli_caches(found->caches, CACHES_MAX);
    return 0;
}

/* ---- Text ------------------------------------------------------------------------------ */

static void print_features(const findings *found, const char *title, int present)
{
    size_t printed = 0;
    printf("%s", title);
    for (size_t i = 0; i < found->feature_count; i++) {
        if ((found->features[i].present != 0) == present) {
            printf(" %s", found->features[i].name);
            printed++;
        }
    }
    printf("%s\n", printed == 0 ? " none" : "");
}

static void print_caches(const findings *found)
{
    printf("caches       ");
    for (size_t i = 0; i < found->cache_count; i++) {
        const attnres_cli_cache *cache = &found->caches[i];
        printf("%s L%d %s ", i == 0 ? "" : ",", cache->level, cache->type);
        if (cache->bytes % ((size_t)1 << 20) == 0) {
            printf("%zu MiB", cache->bytes >> 20);
        } else {
            printf("%zu KiB", cache->bytes >> 10);
        }
    }
    printf("%s\n", found->cache_count == 0 ? " unknown" : "");
}

static void print_text(const findings *found)
{
    printf("attnres       %s, %s\n", attnres_version(), attnres_cli_architecture());
    printf("cpu           %s\n", found->cpu_name);
    print_caches(found);
    print_features(found, "features     ", 1);
    print_features(found, "not present  ", 0);
    for (size_t i = 0; i < found->level_count; i++) {
        const attnres_level_report *report = &found->levels[i];
        printf("%s%-8s %s%s\n", i == 0 ? "levels        " : "              ",
               attnres_level_name(report->level), report->built ? "built, " : "", report->why);
    }
    printf("level         %s: %s\n", attnres_level_name(attnres_current_level()),
           attnres_level_reason());
}

/* ---- JSON ------------------------------------------------------------------------------ */

static json_t *features_json(const findings *found)
{
    json_t *object = json_object();
    for (size_t i = 0; object != NULL && i < found->feature_count; i++) {
        json_object_set_new(object, found->features[i].name,
                            json_boolean(found->features[i].present));
    }
    return object;
}

static json_t *levels_json(const findings *found)
{
    json_t *array = json_array();
    for (size_t i = 0; array != NULL && i < found->level_count; i++) {
        const attnres_level_report *report = &found->levels[i];
        json_array_append_new(
            array, json_pack("{s:s, s:b, s:b, s:s}", "name", attnres_level_name(report->level),
                             "built", report->built, "usable", report->usable, "why", report->why));
    }
    return array;
}

static json_t *caches_json(const findings *found)
{
    json_t *array = json_array();
    for (size_t i = 0; array != NULL && i < found->cache_count; i++) {
        const attnres_cli_cache *cache = &found->caches[i];
        json_array_append_new(array, json_pack("{s:i, s:s, s:I}", "level", cache->level, "type",
                                               cache->type, "bytes", (json_int_t)cache->bytes));
    }
    return array;
}

static int print_json(const findings *found)
{
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:s, s:s, s:o}", "version", attnres_version(), "architecture",
        attnres_cli_architecture(), "cpu", found->cpu_name, "features", features_json(found),
        "levels", levels_json(found), "level", attnres_level_name(attnres_current_level()),
        "level_reason", attnres_level_reason(), "caches", caches_json(found));
    if (root == NULL) {
        return attnres_cli_fail("cannot describe this machine as JSON");
    }
    int failed = json_dumpf(root, stdout, JSON_INDENT(2)) != 0;
    json_decref(root);
    printf("\n");
    return failed ? attnres_cli_fail("cannot write to standard output") : ATTNRES_CLI_EXIT_OK;
}

int attnres_cli_info(int argc, char **argv)
{
    int json = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            printf("usage: attnres info [--json]\n");
            return ATTNRES_CLI_EXIT_OK;
        }
        if (strcmp(argv[i], "--json") != 0) {
            return attnres_cli_fail("info: unknown argument '%s'", argv[i]);
        }
        json = 1;
    }
    findings found = {0};
    int status = ATTNRES_CLI_EXIT_OK;
    if (find_out(&found) != 0) {
        status = attnres_cli_fail("out of memory");
    } else if (json) {
        status = print_json(&found);
    } else {
        print_text(&found);
    }
    free(found.features);
    free(found.levels);
    return status;
}
