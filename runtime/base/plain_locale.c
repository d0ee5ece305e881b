/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/plain_locale.h"

#include <errno.h>

bool fl_plain_locale_begin(fl_plain_locale *locale)
{
    locale->plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (locale->plain == (locale_t)0) {
        return false;
    }
    locale->before = uselocale(locale->plain);
    return true;
}

void fl_plain_locale_end(fl_plain_locale *locale)
{
    int code = errno;
    (void)uselocale(locale->before);
    freelocale(locale->plain);
    errno = code;
}
