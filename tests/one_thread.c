/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into tests that CMakeLists.txt lists as tests of one thread: a test that makes a
 * thread all the same ends there, since the thread sanitizer would never see it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>

static _Noreturn void refuse(const char *call)
{
    fprintf(stderr, "%s: this test is listed as one of one thread (tests/CMakeLists.txt)\n", call);
    fflush(NULL);
    abort();
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *argument)
{
    (void)thread, (void)attributes, (void)start, (void)argument;
    refuse("pthread_create");
}

int thrd_create(thrd_t *thread, thrd_start_t start, void *argument)
{
    (void)thread, (void)start, (void)argument;
    refuse("thrd_create");
}
