/* SPDX-License-Identifier: Apache-2.0 */
/* Small calls bring nothing of filch into the process: no library, no thread, no driver. */
#include <cblas.h>

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static int maps_name(const char *name)
{
    char line[4096];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        found |= strstr(line, name) != NULL;
    if (maps)
        (void)fclose(maps);
    return found;
}

static int threads(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    while (tasks && readdir(tasks))
        count++;
    if (tasks)
        (void)closedir(tasks);
    return count - 2;
}

int main(void)
{
    double a[64 * 64] = {1}, c[64 * 64];
    int before = threads();
    for (int k = 0; k < 100; k++)
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, 64, 64, 64, 1, a, 64, a, 64, 0, c,
                    64);
    int is_front = maps_name("libfilch_blas"), is_engine = maps_name("libfilch_blas_engine");
    printf("front %d, engine %d, driver %d, threads %d and %d, c %g\n", is_front, is_engine,
           maps_name("libcuda"), before, threads(), c[0]);
    return !is_front || is_engine || maps_name("libcuda") || threads() != before || c[0] != 1;
}
