#include "tools/common/numbers.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* strtoll and its kin skip blanks and take signs where none is meant. */
static bool starts_number(const char *text) {
    if (*text == '-' || *text == '+') text++;
    return isdigit((unsigned char)*text) || *text == '.';
}

bool number_whole(const char *text, int64_t low, int64_t high, int64_t *value) {
    char *end;
    errno = 0;
    if (!starts_number(text)) return false;
    long long number = strtoll(text, &end, 10);
    if (errno || end == text || *end || number < low || number > high) return false;
    *value = number;
    return true;
}

bool number_real(const char *text, double *value) {
    char *end;
    if (!starts_number(text)) return false;
    double number = strtod(text, &end);
    if (end == text || *end || !(fabs(number) <= FLT_MAX)) return false;
    if (number != 0 && (float)number == 0) return false;
    *value = number;
    return true;
}

bool number_too_large(const char *text) {
    char *end;
    return starts_number(text) && strtod(text, &end) > FLT_MAX && !*end;
}

int number_sizes(const char *text, char separator, int64_t *sizes, int capacity) {
    for (int count = 0; count < capacity; count++) {
        char *end;
        errno = 0;
        if (!isdigit((unsigned char)*text)) return 0;
        long long number = strtoll(text, &end, 10);
        if (errno || number < 1 || (*end && *end != separator)) return 0;
        sizes[count] = number;
        if (!*end) return count + 1;
        text = end + 1;
    }
    return 0;
}
