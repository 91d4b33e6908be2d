/* SPDX-License-Identifier: Apache-2.0
 *
 * The two files of a curve.
 */
#include "harness/lab/curve_file.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "harness/points/points.h"

int hx_curve_folder(const char *folder, struct dm_err *err) {
    return hx_make_folder(folder, err);
}

int hx_curve_open(struct hx_curve_file *curve, const char *folder, const char *name, const char *suffix,
                  struct dm_err *err) {
    snprintf(curve->path, sizeof(curve->path), "%s/%s.%s", folder, name, suffix);
    curve->file = fopen(curve->path, "w");
    return curve->file ? 0 : dm_fail(err, DM_ERR_IO, "%s: %s", curve->path, strerror(errno));
}

int hx_curve_close(struct hx_curve_file *curve, struct dm_err *err) {
    bool is_whole = !ferror(curve->file);
    return fclose(curve->file) == 0 && is_whole ? 0 : dm_fail(err, DM_ERR_IO, "%s: cannot write", curve->path);
}
