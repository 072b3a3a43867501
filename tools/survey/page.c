#include "tools/survey/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/common/text.h"
#include "tools/survey/document.h"

extern const unsigned char page_style[]; /* page.css */
extern const size_t page_style_bytes;

/* ---- text ---- */

static void escape(FILE *page, const char *text, size_t length) {
    for (; length > 0; text++, length--) {
        switch (*text) {
        case '&': fputs("&amp;", page); break;
        case '<': fputs("&lt;", page); break;
        case '>': fputs("&gt;", page); break;
        case '"': fputs("&quot;", page); break;
        case '\'': fputs("&#39;", page); break;
        default: fputc(*text, page);
        }
    }
}

void page_text(FILE *page, const char *text) {
    json_t *clean = document_text(text);
    if (clean) escape(page, json_string_value(clean), json_string_length(clean));
    json_decref(clean);
}

void page_short(FILE *page, const char *text) {
    const size_t most = 400; /* letters: no reason has more */
    json_t *clean = document_text(text);
    const char *begin = clean ? json_string_value(clean) : "", *end = begin;
    for (size_t n = 0; *end && n < most; n++) end += text_letter_bytes(end);
    escape(page, begin, (size_t)(end - begin));
    if (*end) fputs("\xe2\x80\xa6", page);
    json_decref(clean);
}

void page_code(FILE *page, const char *text) {
    json_t *clean = document_text(text);
    const char *left = clean ? json_string_value(clean) : "";
    fputs("<span class=\"code\">", page);
    for (const char *arrow; (arrow = strstr(left, "->")); left = arrow + 2) {
        escape(page, left, (size_t)(arrow - left));
        fputs("<span class=\"nowrap\">-&gt;</span>", page);
    }
    escape(page, left, strlen(left));
    fputs("</span>", page);
    json_decref(clean);
}

double page_json_number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* ---- numbers ---- */

static void in_groups(FILE *page, const char *digits) {
    size_t whole = strcspn(digits, ".");
    for (size_t i = 0; digits[i]; i++) {
        size_t left = whole - i;
        /* A narrow space that does not break lines, from five digits on. */
        if (i > 0 && i < whole && whole > 4 && left % 3 == 0 && digits[i - 1] != '-') fputs("\xe2\x80\xaf", page);
        fputs(digits[i] == '-' ? "\xe2\x88\x92" : (char[]){digits[i], 0}, page);
    }
}

void page_number(FILE *page, double value, int decimals) {
    char digits[64];
    if (!isfinite(value)) {
        fputs("\xe2\x80\x93", page);
    } else if (fabs(value) >= 1e12 || (value != 0 && fabs(value) < 0.5 * pow(10, -decimals))) {
        fprintf(page, "%.1e", value);
    } else {
        snprintf(digits, sizeof digits, "%.*f", decimals, value);
        in_groups(page, digits);
    }
}

void page_bytes(FILE *page, double bytes) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int unit = 0;
    while (bytes >= 1024 && unit < 6) bytes /= 1024, unit++;
    page_number(page, bytes, unit == 0 || bytes >= 100 ? 0 : 1);
    fprintf(page, " %s", units[unit]);
}

/* ---- the page ---- */

void page_begin(FILE *page, const char *title) {
    page_begin_scripted(page, title, NULL, NULL, 0);
}

void page_begin_scripted(FILE *page, const char *title, const char *hash, const char *style, size_t style_bytes) {
    /* The policy holds even where something was not escaped: nothing else is run, and nothing is fetched. */
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'", page);
    if (hash) fprintf(page, "; script-src '%s'", hash);
    fputs("\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>", page);
    page_text(page, title);
    fputs("</title>\n<style>\n", page);
    fwrite(page_style, 1, page_style_bytes, page);
    if (style) fwrite(style, 1, style_bytes, page);
    fputs("</style>\n</head>\n<body>\n", page);
}

int page_script(FILE *page, const json_t *data, const unsigned char *script, size_t bytes) {
    char *text = json_dumps(data, JSON_COMPACT | JSON_ENSURE_ASCII);
    if (!text) return run_error("no memory for the page");
    fputs("<script type=\"application/json\" id=\"data\">", page);
    for (const char *c = text; *c; c++) {
        if (*c == '<') fputs("\\u003c", page);
        else fputc(*c, page);
    }
    fputs("</script>\n<script>", page);
    fwrite(script, 1, bytes, page);
    fputs("</script>\n", page);
    free(text);
    return 0;
}

void page_end(FILE *page, const json_t *document) {
    const json_t *tool = json_object_get(document, "tool"), *host = json_object_get(document, "host");
    const char *const parts[] = {document_string(tool, "name"), document_string(tool, "version"), document_string(tool, "commit"),
                                 document_string(document, "time_utc"), document_string(host, "cpu"), document_string(host, "os"),
                                 document_string(host, "kernel"), document_string(host, "machine")};
    static const char *const before[] = {"", " ", ", commit ", "; ", "; ", "; ", " ", " "};
    fputs("<footer>", page);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (!parts[i][0]) continue;
        fputs(before[i], page);
        page_text(page, parts[i]);
    }
    fputs("</footer>\n</body>\n</html>\n", page);
}

void page_section(FILE *page, const char *id, const char *heading) {
    fputs("<section id=\"", page);
    page_text(page, id);
    fputs("\">\n<h2>", page);
    page_text(page, heading);
    fputs("</h2>\n", page);
}

void page_section_end(FILE *page) {
    fputs("</section>\n", page);
}

/* ---- badges ---- */

static const char *badge_class(const char *word) {
    static const struct {
        const char *word, *class;
    } known[] = {
        {"ok", "good"}, {"passed", "good"}, {"faster", "good"}, {"fixed", "good"}, {"better", "good"}, {"wrong", "bad"}, {"build-failed", "bad"},
        {"crashed", "bad"}, {"timeout", "bad"}, {"slower", "bad"}, {"broken", "bad"}, {"worse", "bad"}, {"failed", "bad"},
        {"suspect", "odd"}, {"inconclusive", "odd"}, {"gone", "odd"}, {"appeared", "odd"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].word, word) == 0) return known[i].class;
    return "none";
}

void page_badge(FILE *page, const char *word) {
    char some[24]; /* which does not break: no more than any status has */
    snprintf(some, sizeof some, "%s", word);
    fprintf(page, "<span class=\"badge %s\">", badge_class(word));
    page_text(page, some);
    fputs("</span>", page);
}

/* ---- tables ---- */

void page_table(FILE *page, const char *caption, const page_column *columns, int n) {
    fprintf(page, "<div class=\"box\" tabindex=\"0\"><table%s>", n > 12 ? " class=\"dense\"" : "");
    if (caption) {
        fputs("<caption>", page);
        page_text(page, caption);
        fputs("</caption>", page);
    }
    fputs("\n<thead><tr>", page);
    for (int i = 0; i < n; i++) {
        fprintf(page, "<th scope=\"col\"%s>", columns[i].number ? " class=\"number\"" : "");
        page_text(page, columns[i].head);
        if (columns[i].unit) {
            fputs(" <span class=\"unit\">", page);
            page_text(page, columns[i].unit);
            fputs("</span>", page);
        }
        fputs("</th>", page);
    }
    fputs("</tr></thead>\n<tbody>\n", page);
}

void page_table_end(FILE *page) {
    fputs("</tbody></table></div>\n", page);
}

void page_row(FILE *page) {
    fputs("<tr>", page);
}

void page_row_end(FILE *page) {
    fputs("</tr>\n", page);
}

void page_cell_text(FILE *page, const char *text) {
    fputs("<td>", page);
    page_text(page, text);
    fputs("</td>", page);
}

void page_cell_number(FILE *page, double value, int decimals) {
    fputs("<td class=\"number\">", page);
    page_number(page, value, decimals);
    fputs("</td>", page);
}

void page_cell_badge(FILE *page, const char *word) {
    fputs("<td>", page);
    page_badge(page, word);
    fputs("</td>", page);
}

void page_cell_strong(FILE *page, double value, int decimals) {
    fputs("<td class=\"number\"><strong>", page);
    page_number(page, value, decimals);
    fputs("</strong></td>", page);
}

void page_cell_note(FILE *page, const char *word, const char *why) {
    fputs("<td class=\"number\"><small title=\"", page);
    page_text(page, why);
    fputs("\">", page);
    page_text(page, word);
    fputs("</small></td>", page);
}

/* ---- cards ---- */

void page_card(FILE *page, const char *heading, const char *status) {
    fputs("<div class=\"card\"><h3>", page);
    page_short(page, heading);
    if (status && status[0]) {
        fputc(' ', page);
        page_badge(page, status);
    }
    fputs("</h3>\n<dl>\n", page);
}

void page_card_end(FILE *page) {
    fputs("</dl></div>\n", page);
}

static void begin_fact(FILE *page, const char *name) {
    fputs("<div><dt>", page);
    page_text(page, name);
    fputs("</dt><dd>", page);
}

void page_fact(FILE *page, const char *name, const char *text) {
    if (!text[0]) return;
    begin_fact(page, name);
    page_short(page, text);
    fputs("</dd></div>\n", page);
}

void page_fact_number(FILE *page, const char *name, double value, const char *unit) {
    if (!isfinite(value)) return;
    begin_fact(page, name);
    page_number(page, value, 0);
    fprintf(page, "%s%s</dd></div>\n", unit[0] ? " " : "", unit);
}

void page_fact_bytes(FILE *page, const char *name, double bytes) {
    if (!isfinite(bytes)) return;
    begin_fact(page, name);
    page_bytes(page, bytes);
    fputs("</dd></div>\n", page);
}

static void capabilities(FILE *page, const json_t *all, bool wanted) {
    const char *name;
    const json_t *has;
    bool first = true;
    json_object_foreach((json_t *)all, name, has) {
        if (json_is_true(has) != wanted) continue;
        if (first) begin_fact(page, wanted ? "can" : "cannot");
        else fputs(", ", page);
        first = false;
        page_text(page, name);
    }
    if (!first) fputs("</dd></div>\n", page);
}

static void memory_fact(FILE *page, const json_t *device) {
    double bytes = page_json_number(device, "memory_bytes");
    if (!isfinite(bytes)) return;
    begin_fact(page, "memory");
    page_bytes(page, bytes);
    fputs(json_is_true(json_object_get(device, "unified_memory")) ? ", shared with the host" : "", page);
    fputs("</dd></div>\n", page);
}

void page_device(FILE *page, const json_t *device) {
    const json_t *facts = json_object_get(device, "facts"), *can = json_object_get(device, "capabilities");
    page_card(page, document_string(device, "name"), document_string(device, "status"));
    page_fact(page, "reason", document_string(device, "reason"));
    page_fact(page, "id", document_string(device, "id"));
    page_fact(page, "class", document_string(device, "type"));
    page_fact(page, "vendor", document_string(device, "vendor"));
    page_fact(page, "platform", document_string(device, "platform"));
    page_fact(page, "driver", document_string(device, "driver"));
    page_fact(page, "version", document_string(device, "cl_version"));
    page_fact_number(page, "compute units", page_json_number(device, "compute_units"), "");
    page_fact_number(page, "clock", page_json_number(device, "clock_mhz"), "MHz");
    memory_fact(page, device);
    page_fact_bytes(page, "largest buffer", page_json_number(device, "max_buffer_bytes"));
    page_fact_bytes(page, "local memory", page_json_number(device, "local_memory_bytes"));
    page_fact_bytes(page, "cache", page_json_number(facts, "cache_bytes"));
    page_fact_number(page, "work-groups to", page_json_number(device, "max_work_group_size"), "");
    if (page_json_number(facts, "sub_group_size") > 0)
        page_fact_number(page, "sub-groups of", page_json_number(facts, "sub_group_size"), "");
    page_fact_number(page, "vectors of", page_json_number(facts, "vector_width_f32"), "floats");
    if (json_is_object(can)) capabilities(page, can, true), capabilities(page, can, false);
    page_card_end(page);
}
