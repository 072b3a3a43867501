#include "runtime/base/number.h"

#include <locale.h>
#include <stdlib.h>

typedef struct decimal {
    uint64_t digits; /* the first 19 significant ones */
    int significant; /* how many there are */
    int exponent;    /* value = digits x 10^exponent, if there are no more than 19 */
    bool negative;
} decimal;

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static const char *skip_blanks(const char *text) {
    while (*text == ' ' || *text == '\t') text++;
    return text;
}

static const char *scan_digits(const char *text, decimal *d, int shift) {
    for (; is_digit(*text); text++) {
        if (d->significant < 19) {
            d->digits = d->digits * 10 + (uint64_t)(*text - '0');
            d->exponent += shift;
        }
        if (d->digits) d->significant++;
    }
    return text;
}

static const char *scan_exponent(const char *text, decimal *d) {
    bool negative = *text == '-';
    if (*text == '-' || *text == '+') text++;
    if (!is_digit(*text)) return NULL;
    int exponent = 0;
    for (; is_digit(*text); text++)
        if (exponent < 100000) exponent = exponent * 10 + (*text - '0');
    d->exponent += negative ? -exponent : exponent;
    return text;
}

/* Checks the text against the grammar; the first character behind the number, or NULL. */
static const char *scan(const char *text, decimal *d) {
    d->negative = *text == '-';
    if (*text == '-' || *text == '+') text++;
    const char *begin = text, *end = scan_digits(text, d, 0);
    int count = (int)(end > begin);
    if (*end == '.') {
        begin = end + 1;
        end = scan_digits(begin, d, -1);
        count += end > begin;
    }
    if (count == 0) return NULL;
    if (*end == 'e' || *end == 'E') return scan_exponent(end + 1, d);
    return end;
}

/* Both factors are exact doubles, so that one rounding is all (Clinger 1990). */
static bool convert_exactly(const decimal *d, double *value) {
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (d->significant > 19 || d->digits >> 53 || d->exponent < -22 || d->exponent > 22) return false;
    double digits = (double)d->digits;
    double magnitude = d->exponent < 0 ? digits / powers[-d->exponent] : digits * powers[d->exponent];
    *value = d->negative ? -magnitude : magnitude;
    return true;
}

/* strtod takes the decimal point from the thread's locale: "C" is set meanwhile. */
static double convert_any(const char *text) {
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = plain ? uselocale(plain) : (locale_t)0;
    double value = strtod(text, NULL);
    if (plain) {
        uselocale(before);
        freelocale(plain);
    }
    return value;
}

bool clt_number_parse(const char *text, double *value) {
    decimal d = {0};
    text = skip_blanks(text);
    const char *end = scan(text, &d);
    if (!end || *skip_blanks(end)) return false;
    if (!convert_exactly(&d, value)) *value = convert_any(text);
    return true;
}

bool clt_number_whole(const char *text, uint64_t most, uint64_t *value) {
    uint64_t number = 0;
    if (!*text) return false;
    for (; is_digit(*text); text++) {
        uint64_t digit = (uint64_t)(*text - '0');
        if (digit > most || number > (most - digit) / 10) return false;
        number = number * 10 + digit;
    }
    if (*text) return false;
    *value = number;
    return true;
}
