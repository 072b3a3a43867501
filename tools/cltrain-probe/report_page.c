/* The page of some documents: what stands where. */
#include <stdio.h>
#include <string.h>

#include "report.h"
#include "tools/common/message.h"
#include "tools/survey/document.h"
#include "tools/survey/page.h"

/* Of roofline.js, as browsers reckon it: tests/tools/test_html.sh tells the right one. */
#define SCRIPT_HASH "sha256-LO7KDjgTLSMGu8ju4XXvFA7BeSNNfHpDS/kYN3wNkkc="

extern const unsigned char roofline_script[];
extern const size_t roofline_script_bytes;

typedef struct pages {
    const json_t *const *documents;
    int n;
} pages;

static bool is_kind(const json_t *document, const char *kind) {
    return strcmp(document_string(document, "kind"), kind) == 0;
}

/* The one of a kind after some others; NULL: there is none. */
static const json_t *nth(const pages *p, const char *kind, int skip) {
    for (int i = 0; i < p->n; i++)
        if (is_kind(p->documents[i], kind) && skip-- == 0) return p->documents[i];
    return NULL;
}

static int count(const pages *p, const char *kind) {
    int n = 0;
    while (nth(p, kind, n)) n++;
    return n;
}

/* ---- the head ---- */

static void head(FILE *page, const pages *p) {
    const json_t *bench = nth(p, "bench", 0), *first = bench ? bench : p->documents[0];
    const json_t *device = json_array_get(json_object_get(first, "devices"), 0);
    const char *name = document_string(device, "name");
    char title[256];
    snprintf(title, sizeof title, "%.180s%scltrain-probe", name, name[0] ? ": " : "");
    page_begin_scripted(page, title, bench ? SCRIPT_HASH : NULL, NULL, 0);
    fputs("<header>\n<h1>", page);
    page_short(page, name[0] && json_array_size(json_object_get(first, "devices")) == 1 ? name : "OpenCL devices");
    fputs("</h1>\n<p class=\"soft\">", page);
    page_text(page, document_string(first, "kind"));
    if (document_string(first, "mode")[0]) fputs(", ", page), page_text(page, document_string(first, "mode"));
    if (json_is_number(json_object_get(first, "seconds")))
        fputs(", ", page), page_number(page, page_json_number(first, "seconds"), 0), fputs(" s", page);
    fputs("; <span class=\"together\">", page);
    page_text(page, document_string(first, "time_utc"));
    fputs("</span></p>\n</header>\n", page);
}

/* ---- devices and drivers ---- */

static bool is_same_device(const json_t *a, const json_t *b) {
    const char *id = document_string(a, "id");
    return id[0] && strcmp(id, document_string(b, "id")) == 0 && strcmp(document_string(a, "driver"), document_string(b, "driver")) == 0;
}

/* Of all documents from `first` on up to `end`, the one that tells most of a device; NULL: none has it. */
static const json_t *find_device(const pages *p, int first, int end, const json_t *device) {
    size_t k;
    const json_t *other, *found = NULL;
    for (int i = first; i < end; i++) {
        json_array_foreach(json_object_get(p->documents[i], "devices"), k, other) {
            bool more = !found || json_object_size(other) > json_object_size(found);
            if (is_same_device(other, device) && more) found = other;
        }
    }
    return found;
}

/* A driver that gave no device has a card too: with why. */
static void driver_cards(FILE *page, const json_t *document) {
    size_t i;
    const json_t *driver;
    json_array_foreach(json_object_get(document, "drivers"), i, driver) {
        if (strcmp(document_string(driver, "status"), "ok") == 0) continue;
        page_card(page, document_string(driver, "icd"), document_string(driver, "status"));
        page_fact(page, "reason", document_string(driver, "reason"));
        page_fact(page, "library", document_string(driver, "library"));
        page_card_end(page);
    }
}

static void cards(FILE *page, const pages *p) {
    size_t k;
    const json_t *device;
    page_section(page, "devices", "Devices");
    fputs("<div class=\"cards\">\n", page);
    for (int i = 0; i < p->n; i++) {
        json_array_foreach(json_object_get(p->documents[i], "devices"), k, device) {
            if (find_device(p, 0, i, device)) continue; /* shown already */
            const json_t *best = find_device(p, i, p->n, device);
            page_device(page, best ? best : device);
        }
        driver_cards(page, p->documents[i]);
    }
    fputs("</div>\n", page);
    page_section_end(page);
}

/* ---- the rest ---- */

static void benches(FILE *page, const pages *p, json_t *rooflines) {
    const json_t *bench;
    int n = count(p, "bench");
    for (int i = 0; (bench = nth(p, "bench", i)); i++) {
        char ids[24] = "", name[300] = "";
        const char *device = document_string(json_array_get(json_object_get(bench, "devices"), 0), "name");
        if (n > 1) {
            snprintf(ids, sizeof ids, "bench%d-", i + 1);
            if (n == 2 && nth(p, "compare", 0)) snprintf(name, sizeof name, "%c", 'A' + i);
            else snprintf(name, sizeof name, "%d: %.80s", i + 1, device);
        }
        report_bench(page, bench, ids, name, rooflines);
    }
}

int report_write(FILE *page, const json_t *const *documents, int n) {
    const pages p = {documents, n};
    const json_t *bench = nth(&p, "bench", 0), *document;
    head(page, &p);
    cards(page, &p);
    for (int i = 0; (document = nth(&p, "compare", i)); i++)
        report_comparison(page, document, i == 0 ? bench : NULL, i == 0 ? nth(&p, "bench", 1) : NULL);
    if ((document = nth(&p, "no comparison", 0))) report_no_comparison(page, "Comparison", document);
    json_t *rooflines = json_array();
    benches(page, &p, rooflines);
    report_models(page, documents, n);
    for (int i = 0; (document = nth(&p, "recommend", i)); i++) report_recommend(page, document);
    for (int i = 0; (document = nth(&p, "verify", i)); i++) report_verify(page, document);
    bool drawn = json_array_size(rooflines) > 0;
    json_t *data = json_pack("{s:o}", "rooflines", rooflines);
    int code = drawn ? page_script(page, data, roofline_script, roofline_script_bytes) : 0;
    json_decref(data);
    page_end(page, bench ? bench : documents[0]);
    if (code) return code;
    return fflush(page) || ferror(page) ? output_failed(page) : 0;
}
