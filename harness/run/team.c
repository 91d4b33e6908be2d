/* SPDX-License-Identifier: Apache-2.0
 *
 * Assigns nodes to processes. With MPI the first ranks are compute processes and each of the last ranks is a memory
 * node or index server. Without MPI `run` is the only compute process and the command line names the others.
 */
#include "harness/run/team.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/input_file.h"
#include "harness/run/config.h"
#include "harness/run/config_fields.h"
#include "harness/run/mpi.h"

enum { TOKEN_BYTES = HX_TOKEN_BYTES, ADDRESS_BYTES = 128, HOST_BYTES = 64 };

struct hx_team {
    bool is_mpi, is_server;
    unsigned rank, count; /* of all processes */
    unsigned part, parts; /* of compute processes */
    unsigned nodes, first_cn;
    bool *hosted;
    char (*address_text)[ADDRESS_BYTES]; /* of each memory node and index server */
    const char **addresses;
    char token[TOKEN_BYTES + 1];
    struct dm_processes processes;
};

/* ---- joining ---------------------------------------------------------------------------------------------------- */

static int fail_no_memory(struct dm_err *err) {
    return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
}

/* Ranks beyond those of memory nodes and index servers are compute processes; there is a compute node for each of them,
 * or more if --cns asks for more. */
static int ranks_join(struct hx_team *team, struct hx_config *config, struct dm_err *err) {
    uint64_t servers = config->run.mns + config->run.servers;
    DM_TRY(hx_mpi_open(&team->rank, &team->count, err));
    team->is_mpi = true;
    if (team->count <= servers) {
        return dm_fail(err, DM_ERR_INVALID,
                       "%u ranks: %llu are memory nodes and index servers, and at least 1 has to compute", team->count,
                       (unsigned long long)servers);
    }
    team->parts = team->count - (unsigned)servers;
    team->part = team->rank < team->parts ? team->rank : 0;
    if (config->run.cns < team->parts) {
        char text[16];
        snprintf(text, sizeof(text), "%u", team->parts);
        return hx_config_set(config, "cns", text, err);
    }
    return 0;
}

int hx_team_join(struct hx_config *config, bool is_server, const struct hx_team_options *options, struct hx_team **team,
                 struct dm_err *err) {
    *team = NULL;
    bool is_mpi = hx_mpi_is_launched() && strcmp(config->run.transport, "verbs") == 0;
    if (is_mpi && (is_server || options->mn[0])) {
        return dm_fail(err, DM_ERR_INVALID, "MPI defines the processes: use neither serve nor --mn");
    }
    if (!is_mpi && !is_server && options->mn[0] == '\0') {
        return 0;
    }
    if (strcmp(config->run.transport, "verbs") != 0) {
        return dm_fail(err, DM_ERR_INVALID, "several processes need --transport verbs");
    }
    *team = calloc(1, sizeof(**team));
    if (!*team) {
        return fail_no_memory(err);
    }
    (*team)->is_server = is_server;
    (*team)->count = (*team)->parts = 1;
    (*team)->processes.listener = -1;
    return is_mpi ? ranks_join(*team, config, err) : 0;
}

void hx_team_leave(struct hx_team *team, bool has_failed) {
    if (!team) {
        return;
    }
    if (team->is_mpi) {
        hx_mpi_close(has_failed);
    }
    free(team->hosted);
    free(team->address_text);
    free(team->addresses);
    free(team);
}

/* ---- tokens and addresses --------------------------------------------------------------------------------------- */

/* Reads one line of at most TOKEN_BYTES. Its owner decides who may read the file. */
int hx_token_read(const char *path, char token[HX_TOKEN_BYTES + 1], struct dm_err *err) {
    if (path[0] == '\0') {
        return dm_fail(err, DM_ERR_INVALID,
                       "--token-file is needed: a file with up to %d characters that all processes "
                       "of the run show each other",
                       TOKEN_BYTES);
    }
    char line[TOKEN_BYTES + 3];
    FILE *file = dm_input_open(path);
    bool has_line = file && fgets(line, sizeof(line), file);
    if (!file) {
        return dm_fail(err, DM_ERR_INVALID, "--token-file: '%.200s': %s", path, strerror(errno));
    }
    fclose(file);
    size_t length = has_line ? strcspn(line, "\r\n") : 0;
    if (length == 0 || length > TOKEN_BYTES) {
        return dm_fail(err, DM_ERR_INVALID, "--token-file: '%.200s' has no line of 1 to %d characters", path,
                       TOKEN_BYTES);
    }
    memcpy(token, line, length);
    token[length] = '\0';
    return 0;
}

static int token_make(struct hx_team *team, struct dm_err *err) {
    unsigned char bytes[TOKEN_BYTES / 2];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        return dm_fail(err, DM_ERR_IO, "no random bytes for a token: %s", strerror(errno));
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        snprintf(team->token + 2 * i, 3, "%02x", bytes[i]);
    }
    return hx_mpi_broadcast(team->token, sizeof(team->token)) == 0 ? 0 : dm_fail(err, DM_ERR_IO, "MPI failed");
}

/* "a:1,b:2" in the order of the nodes. */
static int addresses_read(struct hx_team *team, const char *list, struct dm_err *err) {
    unsigned node = 0;
    while (*list) {
        size_t length = strcspn(list, ",");
        if (node == team->first_cn || length == 0 || length >= ADDRESS_BYTES) {
            break;
        }
        memcpy(team->address_text[node], list, length);
        team->addresses[node] = team->address_text[node];
        node++;
        list += length + (list[length] == ',');
    }
    if (*list || node != team->first_cn) {
        return dm_fail(err, DM_ERR_INVALID,
                       "--mn: %u addresses are wanted, HOST:PORT with commas between them: one a "
                       "memory node and index server",
                       team->first_cn);
    }
    return 0;
}

/* If all ranks are on one host, loopback is enough. Otherwise each memory node listens on the name of its host, with
 * --listen host. */
static int own_address(const struct hx_team *team, const char *listen, char *address, size_t capacity,
                       struct dm_err *err) {
    char own[HOST_BYTES] = {0};
    char(*all)[HOST_BYTES] = calloc(team->count, sizeof(*all));
    gethostname(own, sizeof(own) - 1);
    if (!all || hx_mpi_all_gather(own, sizeof(own), all) < 0) {
        free(all);
        return fail_no_memory(err);
    }
    bool is_one_host = true;
    for (unsigned i = 0; i < team->count; i++) {
        is_one_host = is_one_host && strcmp(all[i], own) == 0;
    }
    free(all);
    if (strcmp(listen, "host") == 0) {
        snprintf(address, capacity, "%s:0", own);
    } else if (is_one_host || strcmp(listen, "127.0.0.1:0") != 0) {
        snprintf(address, capacity, "%s", listen);
    } else {
        return dm_fail(err, DM_ERR_INVALID,
                       "the ranks are on several hosts: --listen host lets memory nodes listen on "
                       "the address of their host's name");
    }
    return 0;
}

/* The ranks after the compute processes are memory nodes and index servers, in order. */
static int ranks_assign(struct hx_team *team, const char *listen, struct dm_err *err) {
    char address[ADDRESS_BYTES], own[ADDRESS_BYTES] = {0};
    char(*all)[ADDRESS_BYTES] = calloc(team->count, sizeof(*all));
    bool is_memory = team->rank >= team->parts;
    int rc = all ? token_make(team, err) : fail_no_memory(err);
    rc = rc < 0 ? rc : own_address(team, listen, address, sizeof(address), err);
    if (rc == 0 && is_memory) {
        rc = dm_listen(address, &team->processes.listener, own, sizeof(own), err);
    }
    if (rc == 0 && hx_mpi_all_gather(own, sizeof(own), all) < 0) {
        rc = dm_fail(err, DM_ERR_IO, "MPI failed");
    }
    for (unsigned node = 0; rc == 0 && node < team->first_cn; node++) {
        memcpy(team->address_text[node], all[team->parts + node], ADDRESS_BYTES);
        team->addresses[node] = team->address_text[node];
    }
    free(all);
    for (unsigned node = 0; node < team->nodes; node++) {
        team->hosted[node] = node < team->first_cn ? is_memory && node == team->rank - team->parts
                                                   : !is_memory && (node - team->first_cn) % team->parts == team->part;
    }
    return rc < 0 ? rc : hx_mpi_group(team->parts, err);
}

/* The index servers of an index that survives their failure call each other. */
static bool needs_addresses(const struct hx_config *config, const struct hx_team_options *options) {
    return options->mn[0] == '\0' && options->node >= config->topology.mns && config->topology.servers > 1 &&
           (config->index->caps & IX_CAP_SERVER_FAULT);
}

static int line_assign(struct hx_team *team, const struct hx_config *config, const struct hx_team_options *options,
                       struct dm_err *err) {
    DM_TRY(hx_token_read(options->token_file, team->token, err));
    if (options->mn[0]) {
        DM_TRY(addresses_read(team, options->mn, err));
    }
    for (unsigned node = 0; node < team->nodes; node++) {
        team->hosted[node] = team->is_server ? node == options->node : node >= team->first_cn;
    }
    if (!team->is_server) {
        return 0;
    }
    if (options->node >= team->first_cn) {
        return dm_fail(err, DM_ERR_INVALID, "--node: 0 to %u are memory nodes and index servers", team->first_cn - 1);
    }
    if (needs_addresses(config, options)) {
        return dm_fail(err, DM_ERR_INVALID, "--mn is needed: index servers of %s call each other", config->index->name);
    }
    team->rank = (unsigned)options->node + 1;
    char own[ADDRESS_BYTES];
    DM_TRY(dm_listen(options->listen, &team->processes.listener, own, sizeof(own), err));
    fprintf(stderr, "dmbench serve: node %u listens on %s\n", (unsigned)options->node, own);
    return 0;
}

int hx_team_assign(struct hx_team *team, const struct hx_config *config, const struct hx_team_options *options,
                   struct dm_err *err) {
    if (!team) {
        return 0;
    }
    const struct dm_topology *topology = &config->topology;
    team->first_cn = dm_first_cn(topology);
    team->nodes = team->first_cn + topology->cns;
    team->hosted = calloc(team->nodes, sizeof(*team->hosted));
    team->address_text = calloc(team->first_cn, sizeof(*team->address_text));
    team->addresses = calloc(team->first_cn, sizeof(*team->addresses));
    if (!team->hosted || !team->address_text || !team->addresses) {
        return fail_no_memory(err);
    }
    DM_TRY(team->is_mpi ? ranks_assign(team, options->listen, err) : line_assign(team, config, options, err));
    team->processes.process = team->rank;
    team->processes.count = team->is_mpi ? team->count : team->first_cn + 1;
    team->processes.hosted = team->hosted;
    team->processes.addresses = team->addresses;
    team->processes.token = team->token;
    team->processes.fingerprint = hx_config_fingerprint(config);
    return 0;
}

/* ---- questions -------------------------------------------------------------------------------------------------- */

const struct dm_processes *hx_team_processes(const struct hx_team *team) {
    return team ? &team->processes : NULL;
}

bool hx_team_has(const struct hx_team *team, unsigned node) {
    return !team || team->hosted[node];
}

bool hx_team_is_compute(const struct hx_team *team) {
    return !team || (!team->is_server && team->rank < team->parts);
}

bool hx_team_is_first(const struct hx_team *team) {
    return !team || (hx_team_is_compute(team) && team->part == 0);
}

unsigned hx_team_part(const struct hx_team *team) {
    return team ? team->part : 0;
}

unsigned hx_team_parts(const struct hx_team *team) {
    return team ? team->parts : 1;
}

void hx_team_barrier(const struct hx_team *team) {
    if (team && team->parts > 1) {
        hx_mpi_barrier();
    }
}

/* ---- results ---------------------------------------------------------------------------------------------------- */

/* What one process sends to the first. */
struct parcel {
    struct hx_totals totals;
    uint64_t counters[];
};

/* Adds the slices of time of the other processes. */
static int over_time_gather(const struct hx_team *team, struct hx_measured *measured, struct dm_err *err) {
    if (!measured->over_time) {
        return 0;
    }
    size_t bytes = sizeof(*measured->over_time);
    bool is_first = hx_team_is_first(team);
    struct hx_over_time *all = is_first ? calloc(team->parts, bytes) : NULL;
    int rc = all || !is_first ? 0 : fail_no_memory(err);
    if (rc == 0) {
        rc = hx_mpi_gather(measured->over_time, bytes, all) == 0 ? 0 : dm_fail(err, DM_ERR_IO, "MPI failed");
    }
    for (unsigned part = 1; rc == 0 && is_first && part < team->parts; part++) {
        hx_over_time_merge(measured->over_time, &all[part]);
    }
    free(all);
    return rc;
}

int hx_team_gather(const struct hx_team *team, struct hx_measured *measured, size_t counter_count, struct dm_err *err) {
    if (!team || team->parts == 1) {
        return 0;
    }
    bool is_first = hx_team_is_first(team);
    size_t bytes = sizeof(struct parcel) + counter_count * sizeof(uint64_t);
    bytes = (bytes + _Alignof(struct parcel) - 1) / _Alignof(struct parcel) * _Alignof(struct parcel);
    struct parcel *mine = aligned_alloc(_Alignof(struct parcel), bytes);
    unsigned char *all = is_first ? aligned_alloc(_Alignof(struct parcel), team->parts * bytes) : NULL;
    int rc = mine && (all || !is_first) ? 0 : fail_no_memory(err);
    if (rc == 0) {
        memset(mine, 0, bytes);
        mine->totals = measured->totals;
        memcpy(mine->counters, measured->counters, counter_count * sizeof(uint64_t));
        rc = hx_mpi_gather(mine, bytes, all) == 0 ? 0 : dm_fail(err, DM_ERR_IO, "MPI failed");
    }
    for (unsigned part = 1; rc == 0 && is_first && part < team->parts; part++) {
        const struct parcel *other = (const struct parcel *)(const void *)(all + part * bytes);
        hx_measured_merge(measured, &other->totals, other->counters, counter_count);
    }
    free(mine);
    free(all);
    return rc < 0 ? rc : over_time_gather(team, measured, err);
}
