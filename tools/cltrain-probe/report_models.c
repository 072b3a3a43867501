/* On a page: steps of models as they are predicted, and devices ranked for a model. */
#include <string.h>

#include "report.h"
#include "tools/survey/document.h"
#include "tools/survey/page.h"

/* ---- models ---- */

typedef struct model_view {
    const char *name, *device, *status, *reason;
    double batch, predicted_us, measured_us, error, memory_bytes, largest; /* NAN: not known */
} model_view;

static model_view read_model(const json_t *d) {
    const json_t *model = json_object_get(d, "model"), *predicted = json_object_get(d, "predicted");
    return (model_view){
        .name = document_string(model, "text"), .device = document_string(json_array_get(json_object_get(d, "devices"), 0), "name"),
        .status = document_string(d, "status"), .reason = document_string(d, "reason"),
        .batch = page_json_number(model, "batch"),
        .predicted_us = page_json_number(predicted, "step_us"),
        .measured_us = page_json_number(json_object_get(d, "measured"), "step_us"),
        .error = page_json_number(predicted, "error"),
        .memory_bytes = page_json_number(json_object_get(d, "memory"), "total_bytes"),
        .largest = page_json_number(d, "largest_batch")};
}

static void model_row(FILE *page, const model_view *m) {
    page_row(page);
    fputs("<td class=\"wide\">", page);
    page_code(page, m->name);
    fputs("<small>", page);
    page_text(page, m->device);
    fputs("</small>", page);
    if (m->reason[0]) fputs("<small class=\"why\">", page), page_text(page, m->reason), fputs("</small>", page);
    fputs("</td>", page);
    page_cell_badge(page, m->status[0] ? m->status : "ok");
    page_cell_number(page, m->batch, 0);
    page_cell_number(page, 1e-3 * m->predicted_us, 2);
    page_cell_number(page, 100 * m->error, 1);
    page_cell_number(page, 1e-3 * m->measured_us, 2);
    page_cell_number(page, 100 * (m->predicted_us / m->measured_us - 1), 1);
    page_cell_number(page, m->memory_bytes / (1 << 20), 1);
    page_cell_number(page, m->largest, 0);
    page_row_end(page);
}

void report_models(FILE *page, const json_t *const *documents, int n) {
    static const page_column columns[] = {{"Model", NULL, false}, {"Status", NULL, false}, {"Batch", NULL, true},
                                          {"Predicted step", "ms", true}, {"Error band", "\xc2\xb1 %", true}, {"Measured step", "ms", true},
                                          {"Off by", "%", true}, {"Memory", "MiB", true}, {"Largest batch", NULL, true}};
    bool any = false;
    for (int i = 0; i < n; i++) {
        if (strcmp(document_string(documents[i], "kind"), "model") != 0) continue;
        if (!any) {
            page_section(page, "models", "Predicted step times");
            page_table(page, NULL, columns, sizeof columns / sizeof columns[0]);
        }
        any = true;
        model_view model = read_model(documents[i]);
        model_row(page, &model);
    }
    if (!any) return;
    page_table_end(page);
    page_section_end(page);
}

/* ---- devices ranked for a model ---- */

static const char *name_of(const json_t *document, const char *id) {
    size_t i;
    const json_t *device;
    json_array_foreach(json_object_get(document, "devices"), i, device) {
        if (strcmp(document_string(device, "id"), id) == 0) return document_string(device, "name");
    }
    return id;
}

static void candidate_row(FILE *page, const json_t *document, const json_t *c) {
    size_t i;
    const json_t *reason;
    page_row(page);
    page_cell_number(page, page_json_number(c, "rank"), 0);
    fputs("<td class=\"wide\">", page);
    page_short(page, name_of(document, document_string(c, "device")));
    json_array_foreach(json_object_get(c, "reasons"), i, reason) {
        if (!json_is_string(reason)) continue;
        fputs("<small>", page);
        page_text(page, json_string_value(reason));
        fputs("</small>", page);
    }
    fputs("</td>", page);
    page_cell_badge(page, document_string(c, "status"));
    page_cell_number(page, page_json_number(c, "batch"), 0);
    page_cell_number(page, 1e-3 * page_json_number(c, "step_us"), 2);
    page_cell_number(page, 100 * page_json_number(c, "error"), 1);
    page_cell_number(page, page_json_number(c, "samples_per_second"), 0);
    page_cell_number(page, page_json_number(c, "share"), 0);
    page_row_end(page);
}

void report_recommend(FILE *page, const json_t *recommend) {
    static const page_column columns[] = {{"Rank", NULL, true}, {"Device, and why", NULL, false}, {"Status", NULL, false}, {"Batch", NULL, true},
                                          {"Predicted step", "ms", true}, {"Error band", "\xc2\xb1 %", true}, {"Speed", "samples/s", true},
                                          {"Share", "samples", true}};
    size_t i;
    const json_t *c, *together = json_object_get(recommend, "together");
    page_section(page, "recommend", "Devices for a model");
    fputs("<p>", page);
    page_code(page, document_string(json_object_get(recommend, "model"), "text"));
    fputs("</p>\n", page);
    page_table(page, NULL, columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(json_object_get(recommend, "ranking"), i, c) candidate_row(page, recommend, c);
    page_table_end(page);
    if (page_json_number(together, "ranks") > 1) {
        fputs("<p>Together they take ", page);
        page_number(page, 1e-3 * page_json_number(together, "step_us"), 2);
        fputs(" ms a step, ", page);
        page_number(page, page_json_number(together, "gain"), 2);
        fputs(" times as fast as the first alone.</p>\n", page);
    }
    page_section_end(page);
}
