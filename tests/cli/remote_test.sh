#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Points through GNU parallel, with this machine as its only one, and as a Slurm array, whose tasks are run here one by
# one: the same results as local runs, failures reported, and no partial file after an interrupt.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

cat >base.json <<'JSON'
{"index": "sherman", "workload": "a", "keys": "1K", "ops": "2K", "warmup": "0"}
JSON
echo ":" >machines
expect 0 sweep base.json --grid clients=2,4,8 --out here

# Slurm: the script's tasks, in a folder whose name has blanks.
expect 0 sweep base.json --grid clients=2,4,8 --out "with blanks" --slurm job.sh --jobs 2
holds err "3 points in job.sh"
holds job.sh "--array=1-3%2"
[ ! -e "with blanks/table.tsv" ] || fail "a table of nothing"
# A newer program may imply another size of memory nodes, which makes no other point; a size that is given is kept.
! grep -q mn_memory "with blanks"/specs/*.json || fail "$(cat "with blanks"/specs/*.json)"
expect 0 sweep base.json --grid mn_memory=128MB --out sized --slurm sized.sh
grep -q '"mn_memory": *128000000' sized/specs/*.json || fail "$(cat sized/specs/*.json)"
for task in 1 2 3; do
    SLURM_ARRAY_TASK_ID=$task sh job.sh >task.out 2>&1 || fail "task $task: $(cat task.out)"
done
same_results "with blanks" here 3
expect 0 sweep base.json --grid clients=2,4,8 --out "with blanks"
holds err "3 there already, 0 to run"
sh job.sh 2>task.out && fail "a task without a number"
holds task.out "sbatch"
holds job.sh "#SBATCH --output='$PWD/with blanks/specs/slurm-%a.txt'"
holds job.sh "#SBATCH --cpus-per-task=1"

# A script that waits keeps its points when others of the same folder get one; a percent sign is not Slurm's.
expect 0 sweep base.json --grid clients=2,4 --out "at 100%" --slurm first.sh
expect 0 sweep base.json --grid clients=8 --out "at 100%" --slurm second.sh
holds first.sh "/at 100%%/specs/slurm-%a.txt'"
for task in 1 2; do
    SLURM_ARRAY_TASK_ID=$task sh first.sh >task.out 2>&1 || fail "task $task: $(cat task.out)"
done
expect 0 sweep base.json --grid clients=2,4 --out "at 100%"
holds err "2 there already, 0 to run"

# Where all is there, the script has nothing to do, and replaces one that would run something.
expect 0 sweep base.json --grid clients=2,4 --out "at 100%" --slurm first.sh
holds err "0 points in first.sh"
SLURM_ARRAY_TASK_ID=1 sh first.sh >task.out 2>&1 || fail "nothing to do: $(cat task.out)"
[ ! -s task.out ] || fail "$(cat task.out)"

# Points in real time have a machine to themselves, and a processor a thread.
expect 0 sweep base.json --grid transport=local --grid clients=3,6 --grid cns=1 --out real --slurm real.sh
holds real.sh "#SBATCH --cpus-per-task=6"
holds real.sh "#SBATCH --exclusive"
holds real.sh "#SBATCH --array=1-2%1"

if ! command -v parallel >/dev/null 2>&1; then
    expect 1 sweep base.json --out nowhere --sshloginfile machines
    holds err "Debian package parallel"
    missing parallel
fi
expect 0 sweep base.json --grid clients=2,4,8 --out "far away" --sshloginfile machines --jobs 2
holds err "3 of 3 points done"
same_results "far away" here 3
[ "$(wc -l <"far away/table.tsv")" -eq 4 ] || fail "$(cat "far away/table.tsv")"

# A point that fails is reported with its own message; the others have results.
expect 0 sweep base.json --grid clients=2,4 --out failing --dry-run
point=$(sed -n 's/^ *\([0-9a-f]*\) .*clients=4$/\1/p' out)
mkdir -p "failing/points/$point.json"
expect 1 sweep base.json --grid clients=2,4 --out failing --sshloginfile machines
holds err "1 of 2 points done"
holds err "point clients=4 ($point): dmbench run: "

# Results that were there before are no results of points that are run again.
expect 0 sweep base.json --grid clients=2,4 --out again
cp machines nowhere
echo "no.such.host.invalid" >nowhere
expect 1 sweep base.json --grid clients=2,4 --out again --sshloginfile nowhere --force
holds err "0 of 2 points done"
rm nowhere

# An interrupt: one point ends soon, the other one never.
"$DMBENCH" sweep base.json --grid ops=2K,100G --out long --sshloginfile machines --jobs 2 >out 2>err &
pid=$!
once has_results long/points
interrupt INT
holds err "interrupted: 1 of 2 points done"
[ -z "$(find long -name '*.json.tmp.*')" ] || fail "left: $(find long)"

expect 1 sweep base.json --out nofile --sshloginfile nowhere
