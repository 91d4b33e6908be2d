/* SPDX-License-Identifier: Apache-2.0
 *
 * Key files, SOSD's and raw ones: any file is accepted or refused, and the keys of an accepted one ascend.
 */
#include "fuzz/fuzz_file.h"
#include "workloads/keyset.h"

enum { FRESH = 4 };

static void keys_check(const char *scheme, uint64_t wanted) {
    struct dm_err err;
    struct wl_keymap map;
    char key_set[128];
    snprintf(key_set, sizeof(key_set), "%s:%s", scheme, fuzz_path);
    if (wl_keymap_open(&map, key_set, wanted, 0, false, 1, &err) < 0) {
        return;
    }
    uint64_t count = 0;
    const uint64_t *keys = wl_keymap_load(&map, &count);
    for (uint64_t i = 0; keys && i < count; i++) {
        fuzz_require(keys[i] <= WL_KEY_MAX && (i == 0 || keys[i] > keys[i - 1]), "keys do not ascend");
    }
    /* New keys come from the widest gap, which has at least as many keys as follow the last one, and may have very few.
     */
    bool has_free_keys = keys && count > 0 && WL_KEY_MAX - keys[count - 1] >= FRESH;
    for (uint64_t number = 0; has_free_keys && number < FRESH; number++) {
        fuzz_require(wl_keymap_key(&map, map.fresh_start + number) <= WL_KEY_MAX, "a new key is out of range");
    }
    wl_keymap_close(&map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    (void)fuzz_file(data, size);
    keys_check("sosd", 0);
    keys_check("sosd", 2);
    keys_check("raw", 0);
    return 0;
}
