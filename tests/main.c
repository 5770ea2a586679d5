/* All tests. Check's own variables apply: CK_FORK=no for debuggers and sanitizers, CK_RUN_SUITE and
 * CK_RUN_CASE to run a part, CK_TIMEOUT_MULTIPLIER for emulators. */
#include "fresh.h"
#include "inputs.h"
#include "levels.h"
#include "suites.h"

#include <stdio.h>

#define ADD_SUITE(name) srunner_add_suite(runner, name##_suite());

int main(int argc, char **argv)
{
    int status;
    if (fresh_is_wanted(argc, argv, &status)) {
        return status;
    }
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* tests print from forked processes */
    printf("attnres %s, seed %llu (ATTNRES_TEST_SEED), %s\n", attnres_version(),
           (unsigned long long)inputs_seed(), attnres_level_reason());
    levels_print();
    if (inputs_quick()) {
        printf("SKIPPED: parts of the biggest loops, for ATTNRES_TEST_QUICK is set\n");
    }
#if !ATTNRES_TESTS_FILES
    printf("SKIPPED: all suites that read files, for the program is not built\n");
#endif
    SRunner *runner = srunner_create(NULL);
    ATTNRES_SUITES(ADD_SUITE)
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
