/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the claims strictly: an unknown member or value is an error that names the file, the claim and the member.
 */
#include "harness/study/claims.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/opt_json.h"
#include "harness/base/errors.h"
#include "harness/base/json.h"
#include "harness/study/claims_reasons.h"
#include "harness/study/figure.h"

enum { WHERE_BYTES = 256, PATH_BYTES = 4096 };

static const char *const kind_names[] = {"value", "ratio", "trend"}; /* as enum hx_claim_kind */

static int no_memory(struct dm_err *err) {
    return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for claims");
}

static int read_text(const json_t *object, const char *name, bool required, const char *where, const char **text,
                     struct dm_err *err) {
    const json_t *value;
    DM_TRY(hx_json_get(object, name, JSON_STRING, required, where, &value, err));
    *text = json_string_value(value);
    return 0;
}

/* One end of what is expected; null is open. */
static int read_bound(const json_t *value, double open, const char *where, double *bound, struct dm_err *err) {
    *bound = json_is_null(value) ? open : json_number_value(value);
    return json_is_null(value) || json_is_number(value)
               ? 0
               : dm_fail(err, DM_ERR_INVALID, "%s.expect: must be a number or [from, to]", where);
}

static int read_expected(const json_t *object, enum hx_claim_kind kind, const char *where, struct hx_check *check,
                         struct dm_err *err) {
    const json_t *expect = json_object_get(object, "expect"), *tolerance;
    DM_TRY(hx_json_get(object, "tolerance", JSON_REAL, false, where, &tolerance, err));
    check->tolerance = tolerance != NULL ? json_number_value(tolerance) : kind == HX_CLAIM_RATIO ? 0.25 : 0.05;
    if ((expect != NULL) == (kind == HX_CLAIM_TREND)) {
        return dm_fail(err, DM_ERR_INVALID, "%s.expect: values and ratios need it, trends have none", where);
    }
    if (expect == NULL) {
        return 0;
    }
    bool range = json_is_array(expect) && json_array_size(expect) == 2;
    DM_TRY(read_bound(range ? json_array_get(expect, 0) : expect, -INFINITY, where, &check->low, err));
    DM_TRY(read_bound(range ? json_array_get(expect, 1) : expect, INFINITY, where, &check->high, err));
    return check->low <= check->high ? 0 : dm_fail(err, DM_ERR_INVALID, "%s.expect: its ends are the wrong way", where);
}

static int read_check(const json_t *object, const struct hx_claim *claim, const char *figure, const char *where,
                      struct hx_check *check, struct dm_err *err) {
    static const char *const known[] = {"what",      "reads",     "value",   "over", "expect",
                                        "tolerance", "direction", "not_run", NULL};
    DM_TRY(hx_json_check(object, known, where, err));
    DM_TRY(read_text(object, "what", false, where, &check->what, err));
    const char *not_run = check->not_run;
    DM_TRY(read_text(object, "not_run", false, where, &check->not_run, err));
    check->not_run = check->not_run != NULL ? check->not_run : not_run;
    bool runs = check->not_run == NULL;
    DM_TRY(read_text(object, "reads", runs && figure == NULL, where, &check->figure, err));
    DM_TRY(read_text(object, "value", runs, where, &check->value, err));
    DM_TRY(read_text(object, "over", false, where, &check->over, err));
    DM_TRY(read_text(object, "direction", false, where, &check->direction, err));
    check->what = check->what != NULL ? check->what : "";
    check->figure = check->figure != NULL ? check->figure : figure != NULL ? figure : "";
    check->value = check->value != NULL ? check->value : "";
    return read_expected(object, claim->kind, where, check, err);
}

static int read_kind(const json_t *object, const char *where, enum hx_claim_kind *kind, struct dm_err *err) {
    const char *name;
    DM_TRY(read_text(object, "kind", true, where, &name, err));
    for (int i = HX_CLAIM_VALUE; i <= HX_CLAIM_TREND; i++) {
        if (strcmp(kind_names[i], name) == 0) {
            *kind = (enum hx_claim_kind)i;
            return 0;
        }
    }
    return dm_fail_in(err, hx_fail_unknown(err, "kind", name, kind_names, 3), "%s", where);
}

static int read_claim(const json_t *object, const char *scale, const char *where, struct hx_claim *claim,
                      struct dm_err *err) {
    static const char *const known[] = {"id",    "paper",  "figure",  "text",    "kind", "needs",
                                        "reads", "checks", "because", "not_run", NULL};
    const char *figure, *not_run;
    const json_t *checks, *because;
    char member[WHERE_BYTES];
    DM_TRY(hx_json_check(object, known, where, err));
    DM_TRY(read_text(object, "id", true, where, &claim->id, err));
    snprintf(member, sizeof(member), "%.180s: %.60s", where, claim->id);
    DM_TRY(read_text(object, "paper", true, member, &claim->paper, err));
    DM_TRY(read_text(object, "figure", true, member, &claim->figure, err));
    DM_TRY(read_text(object, "text", true, member, &claim->text, err));
    DM_TRY(read_text(object, "needs", false, member, &claim->needs, err));
    DM_TRY(read_text(object, "reads", false, member, &figure, err));
    DM_TRY(read_text(object, "not_run", false, member, &not_run, err));
    DM_TRY(read_kind(object, member, &claim->kind, err));
    DM_TRY(hx_json_get(object, "checks", JSON_ARRAY, true, member, &checks, err));
    claim->checks = calloc(json_array_size(checks) + 1, sizeof(*claim->checks));
    if (claim->checks == NULL) {
        return no_memory(err);
    }
    DM_TRY(hx_json_get(object, "because", JSON_ARRAY, false, member, &because, err));
    for (size_t i = 0; i < json_array_size(checks); i++) {
        snprintf(member, sizeof(member), "%.150s: %.60s.checks[%zu]", where, claim->id, i);
        claim->check_count = i + 1;
        claim->checks[i].not_run = not_run;
        DM_TRY(read_check(json_array_get(checks, i), claim, figure, member, &claim->checks[i], err));
    }
    if (claim->check_count == 0) {
        return dm_fail(err, DM_ERR_INVALID, "%s: has no checks", member);
    }
    snprintf(member, sizeof(member), "%.180s: %.60s", where, claim->id);
    const char *first = claim->checks[0].figure;
    figure = figure != NULL ? figure : first != NULL && first[0] != '\0' ? first : NULL;
    return hx_reasons_read(because, figure, scale, member, claim, err);
}

/* An own metric of a file must not hide one that all share; `shared` is NULL for those themselves. */
static int check_metrics(const json_t *metrics, const json_t *shared, const char *where, struct dm_err *err) {
    const char *name;
    json_t *object;
    json_object_foreach((json_t *)metrics, name, object) {
        char member[WHERE_BYTES];
        struct hx_fig_metric metric = {.column = ""};
        snprintf(member, sizeof(member), "%.180s: metrics.%.60s", where, name);
        if (json_object_get(shared, name) != NULL) {
            return dm_fail(err, DM_ERR_INVALID, "%s: is in metrics.json already", member);
        }
        DM_TRY(hx_fig_metric_read(object, member, &metric, err));
    }
    return 0;
}

static int check_id(const struct hx_claims *claims, const struct hx_claim *claim, const char *where,
                    struct dm_err *err) {
    for (const struct hx_claim *other = claims->items; other < claim; other++) {
        if (strcmp(other->id, claim->id) == 0) {
            return dm_fail(err, DM_ERR_INVALID, "%s: there are two claims '%s'", where, claim->id);
        }
    }
    return 0;
}

/* Appends the claims of one file. */
static int read_items(struct hx_claims *claims, const json_t *file, const char *where, struct dm_err *err) {
    static const char *const known[] = {"metrics", "claims", NULL};
    const json_t *array, *metrics;
    DM_TRY(hx_json_check(file, known, where, err));
    DM_TRY(hx_json_get(file, "metrics", JSON_OBJECT, false, where, &metrics, err));
    DM_TRY(hx_json_get(file, "claims", JSON_ARRAY, true, where, &array, err));
    DM_TRY(check_metrics(metrics, claims->metrics, where, err));
    size_t more = json_array_size(array);
    struct hx_claim *items = realloc(claims->items, (claims->count + more + 1) * sizeof(*items));
    if (items == NULL) {
        return no_memory(err);
    }
    claims->items = items;
    for (size_t i = 0; i < more; i++) {
        struct hx_claim *claim = &items[claims->count++];
        *claim = (struct hx_claim){.metrics = metrics};
        DM_TRY(read_claim(json_array_get(array, i), claims->scale, where, claim, err));
        DM_TRY(check_id(claims, claim, where, err));
    }
    return 0;
}

static int read_file(struct hx_claims *claims, const char *id, struct dm_err *err) {
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/claims/%s.json", claims->plots, id);
    json_t *file = dm_json_load(path, err);
    if (file == NULL || json_array_append_new(claims->files, file) != 0) {
        return file != NULL ? no_memory(err) : DM_ERR_INVALID;
    }
    return read_items(claims, file, path, err);
}

/* {"cx6-100g": [{"profile": "cx6-100g-high", "parameter": "..."}]} */
static int check_sensitivity(const json_t *sensitivity, const char *where, struct dm_err *err) {
    static const char *const known[] = {"profile", "parameter", NULL};
    const char *profile;
    json_t *variants, *variant;
    size_t at;
    json_object_foreach((json_t *)sensitivity, profile, variants) {
        if (!json_is_array(variants) || json_array_size(variants) > HX_VARIANTS_MAX) {
            return dm_fail(err, DM_ERR_INVALID, "%s: %s: must be an array of at most %d", where, profile,
                           HX_VARIANTS_MAX);
        }
        json_array_foreach(variants, at, variant) {
            const char *text;
            DM_TRY(hx_json_check(variant, known, where, err));
            DM_TRY(read_text(variant, "profile", true, where, &text, err));
            DM_TRY(read_text(variant, "parameter", true, where, &text, err));
        }
    }
    return 0;
}

static int read_table(const struct hx_claims *claims, const char *name, json_t **table, struct dm_err *err) {
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/%s", claims->plots, name);
    *table = dm_json_load(path, err);
    return *table != NULL ? 0 : DM_ERR_INVALID;
}

/* Reads all files. */
static int read_all(struct hx_claims *claims, struct dm_err *err) {
    char **ids;
    DM_TRY(hx_spec_ids(claims->plots, "claims", &ids, err));
    int rc = read_table(claims, "metrics.json", &claims->metrics, err);
    rc = rc < 0 ? rc : check_metrics(claims->metrics, NULL, "metrics.json", err);
    rc = rc < 0 ? rc : read_table(claims, "sensitivity.json", &claims->sensitivity, err);
    rc = rc < 0 ? rc : check_sensitivity(claims->sensitivity, "sensitivity.json", err);
    for (size_t i = 0; rc == 0 && ids[i] != NULL; i++) {
        rc = read_file(claims, ids[i], err);
    }
    hx_figure_ids_free(ids);
    return rc;
}

void hx_claim_figure_free(struct hx_claim_figure *view) {
    if (view->loaded) {
        hx_fig_data_fini(view->figure, &view->data);
    }
    hx_figure_free(view->figure);
    free(view->profile);
    free(view->used);
    free(view);
}

/* ---- open and close --------------------------------------------------------------------------------------------- */

void hx_claim_readings_free(struct hx_claim *claim) {
    for (size_t i = 0; i < claim->reading_count; i++) {
        free(claim->readings[i].checks);
    }
    free(claim->readings);
    claim->readings = NULL;
    claim->reading_count = 0;
}

void hx_claims_close(struct hx_claims *claims) {
    if (claims == NULL) {
        return;
    }
    for (size_t i = 0; i < claims->figure_count; i++) {
        hx_claim_figure_free(claims->figures[i]);
    }
    for (size_t i = 0; i < claims->count; i++) {
        free(claims->items[i].checks);
        free(claims->items[i].reasons);
        hx_claim_readings_free(&claims->items[i]);
    }
    free(claims->figures);
    free(claims->items);
    free(claims->plots);
    free(claims->scale);
    hx_points_free(claims->points);
    json_decref(claims->files);
    json_decref(claims->metrics);
    json_decref(claims->sensitivity);
    free(claims);
}

int hx_claims_read(const char *plots, const char *out, const char *scale, unsigned repeat, struct hx_claims **claims,
                   struct dm_err *err) {
    struct hx_claims *opened = calloc(1, sizeof(*opened));
    *claims = NULL;
    if (opened == NULL) {
        return no_memory(err);
    }
    opened->repeat = repeat;
    opened->plots = strdup(plots);
    opened->scale = strdup(scale);
    opened->points = hx_points_new(out);
    opened->files = json_array();
    bool whole = opened->plots != NULL && opened->scale != NULL && opened->points != NULL && opened->files != NULL;
    int rc = whole ? read_all(opened, err) : no_memory(err);
    if (rc < 0) {
        hx_claims_close(opened);
        return rc;
    }
    *claims = opened;
    return 0;
}

const char *const hx_verdict_names[HX_VERDICTS] = {
    [HX_REPRODUCED] = "reproduced",         [HX_READING] = "reproduced under a reading",
    [HX_DIRECTION_ONLY] = "direction only", [HX_NOT_REPRODUCED] = "not reproduced",
    [HX_UNRESOLVED] = "unresolved",         [HX_NOT_RUN] = "not run",
};

bool hx_claim_is_among(const struct hx_claim *claim, const char *const *ids, size_t id_count) {
    bool among = id_count == 0;
    for (size_t i = 0; i < id_count; i++) {
        among = among || strncmp(claim->id, ids[i], strlen(ids[i])) == 0;
    }
    return among;
}
