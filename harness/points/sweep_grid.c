/* SPDX-License-Identifier: Apache-2.0
 *
 * The grid of a sweep.
 */
#include "harness/points/sweep_grid.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/option_names.h"

enum { NAME_BYTES = 128 };

static void column_fini(struct hx_column *column) {
    for (size_t i = 0; i < column->count; i++) {
        free(column->values[i]);
    }
    free(column->values);
    free(column->name);
}

void hx_grid_fini(struct hx_sweep_grid *grid) {
    for (size_t i = 0; i < grid->count; i++) {
        column_fini(&grid->columns[i]);
    }
    free(grid->columns);
    *grid = (struct hx_sweep_grid){.columns = NULL};
}

/* Splits text at `separator` into the column's values. A separator at the end adds nothing: "mix=read=1;" is one. */
static int column_split(struct hx_column *column, const char *text, char separator, struct dm_err *err) {
    while (*text != '\0') {
        const char *end = strchrnul(text, separator);
        char **values = realloc(column->values, (column->count + 1) * sizeof(*values));
        if (values == NULL) {
            return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a grid");
        }
        column->values = values;
        values[column->count] = strndup(text, (size_t)(end - text));
        if (values[column->count] == NULL) {
            return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a grid");
        }
        column->count++;
        if (end == text) {
            return dm_fail(err, DM_ERR_INVALID, "%s: a value is empty", column->name);
        }
        text = *end == '\0' ? end : end + 1;
    }
    return column->count > 0 ? 0 : dm_fail(err, DM_ERR_INVALID, "%s: no values", column->name);
}

static int column_check(const struct hx_sweep_grid *grid, const struct hx_column *column, struct dm_err *err) {
    for (size_t i = 0; i < grid->count; i++) {
        const struct hx_column *other = &grid->columns[i];
        if (strcmp(other->name, column->name) == 0) {
            return dm_fail(err, DM_ERR_INVALID, "%s: given twice", column->name);
        }
        if (column->listed && other->listed && other->count != column->count) {
            return dm_fail(err, DM_ERR_INVALID, "%s: has %zu values but %s has %zu; lists go together and need as many",
                           column->name, column->count, other->name, other->count);
        }
    }
    return 0;
}

int hx_grid_add(struct hx_sweep_grid *grid, const char *text, bool listed, struct dm_err *err) {
    struct hx_column column = {.listed = listed};
    char typed[NAME_BYTES], name[NAME_BYTES];
    size_t length = strcspn(text, "=");
    if (text[length] == '\0' || length == 0 || length >= sizeof(typed)) {
        return dm_fail(err, DM_ERR_INVALID, "'%.40s' is not NAME=VALUE,VALUE,...", text);
    }
    memcpy(typed, text, length);
    typed[length] = '\0';
    const char *values = text + length + 1;
    int rc = 0;
    if (!hx_option_name(typed, name, sizeof(name)) || (column.name = strdup(name)) == NULL) {
        rc = dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a grid");
        goto out;
    }
    rc = column_split(&column, values, strchr(values, ';') != NULL ? ';' : ',', err);
    rc = rc < 0 ? rc : column_check(grid, &column, err);
    if (rc < 0) {
        goto out;
    }
    struct hx_column *columns = realloc(grid->columns, (grid->count + 1) * sizeof(*columns));
    if (columns == NULL) {
        rc = dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a grid");
        goto out;
    }
    grid->columns = columns;
    columns[grid->count++] = column;
    column = (struct hx_column){.name = NULL};
out:
    column_fini(&column);
    return rc;
}

/* True for the first list column, which represents all of them. */
static bool is_first_list(const struct hx_sweep_grid *grid, size_t at) {
    for (size_t i = 0; i < at; i++) {
        if (grid->columns[i].listed) {
            return false;
        }
    }
    return grid->columns[at].listed;
}

size_t hx_grid_size(const struct hx_sweep_grid *grid) {
    size_t size = 1;
    for (size_t i = 0; i < grid->count; i++) {
        if (!grid->columns[i].listed || is_first_list(grid, i)) {
            size *= grid->columns[i].count;
        }
    }
    return size;
}

void hx_grid_choose(const struct hx_sweep_grid *grid, size_t at, size_t *choice) {
    size_t listed = 0;
    for (size_t i = grid->count; i-- > 0;) {
        const struct hx_column *column = &grid->columns[i];
        if (!column->listed || is_first_list(grid, i)) {
            choice[i] = at % column->count;
            at /= column->count;
            listed = column->listed ? choice[i] : listed;
        }
    }
    for (size_t i = 0; i < grid->count; i++) {
        choice[i] = grid->columns[i].listed ? listed : choice[i];
    }
}
