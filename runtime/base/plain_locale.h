/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in files: printf writes them with the program's decimal separator, but JSON demands a
 * point. */
#ifndef FL_BASE_PLAIN_LOCALE_H
#define FL_BASE_PLAIN_LOCALE_H

#include <locale.h>
#include <stdbool.h>

/* State between begin and end. Includers define _POSIX_C_SOURCE 200809L or more, for locale_t. */
typedef struct fl_plain_locale {
    locale_t plain, before;
} fl_plain_locale;

/* Gives the calling thread the locale "C". Other threads keep theirs. False: no memory; nothing is
 * to be ended. */
bool fl_plain_locale_begin(fl_plain_locale *locale);
/* Gives the calling thread the locale that it had before. Leaves errno as it is. */
void fl_plain_locale_end(fl_plain_locale *locale);

#endif
