#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# An array of points under Slurm, which this test starts on this machine with a configuration of its own. The job is
# cancelled while it runs: the results that are there then are complete, and the next array has the other points alone.
# In the end they are those of a run without Slurm. The folder's name has a blank and what would be a pattern of Slurm's.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
for program in slurmctld slurmd sbatch squeue scancel; do
    command -v "$program" >/dev/null 2>&1 || skip "$program is not installed (scripts/setup.sh long)"
done

port=$((20000 + $$ % 20000))
cat >slurm.conf <<CONF
ClusterName=one
SlurmctldHost=localhost
AuthType=auth/none
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_res
SelectTypeParameters=CR_Core_Memory
JobAcctGatherType=jobacct_gather/none
NodeName=localhost CPUs=1 RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=localhost Default=YES State=UP
CONF
mkdir state spool
export SLURM_CONF="$work/slurm.conf"
slurmctld -D 2>controller &
controller=$!
slurmd -D -N localhost 2>node &
node=$!
trap 'kill $controller $node 2>/dev/null || true; wait; rm -rf "$work"' EXIT

# soon COMMAND...: waits until it succeeds while both daemons run.
soon() {
    while ! "$@"; do
        kill -0 $controller 2>/dev/null || fail "no controller: $(tail -n 5 controller)"
        kill -0 $node 2>/dev/null || fail "no node: $(tail -n 5 node)"
        sleep 0.2
    done
}
is_up() { [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = 1 ]; }
is_empty() { [ -z "$(squeue -h)" ]; }
folder="at 100%j"
points() { find "$folder/points" -name '*.json' | wc -l; }
has_some() { has_results "$folder/points" "$1" || is_empty; }

cat >base.json <<'JSON'
{"index": "sherman", "workload": "a", "keys": "100K", "ops": "400K", "warmup": "0"}
JSON
set -- sweep base.json --grid clients=2,4,6,8,10,12,14,16 --out "$folder"
expect 0 "$@" --slurm job.sh
holds err "8 points in job.sh"
soon is_up
job=$(sbatch --parsable job.sh)
soon has_some 2
scancel "$job"
soon is_empty
whole=$(points)
[ "$whole" -ge 2 ] || fail "the array ended with $whole results: $(cat "$folder"/specs/slurm-*.txt)"
[ "$whole" -lt 8 ] || fail "the array was done before it was cancelled"

expect 0 "$@" --slurm job.sh
holds err "$whole there already"
sbatch job.sh >/dev/null
soon is_empty
expect 0 "$@"
holds err "8 there already, 0 to run"

expect 0 sweep base.json --grid clients=2,4,6,8,10,12,14,16 --out here
same_results "$folder" here 8
[ -e "$folder/specs/slurm-1.txt" ] || fail "messages of tasks: $(find . -name 'slurm-*')"

# A script that waits keeps its points when another one is written for the same folder. Points in real time are given all
# processors that they want, which this machine may not have.
expect 0 sweep base.json --grid clients=3,5 --out "$folder" --slurm first.sh
expect 0 sweep base.json --grid clients=7 --out "$folder" --slurm second.sh
sbatch first.sh >/dev/null
soon is_empty
expect 0 sweep base.json --grid clients=3,5 --out "$folder"
holds err "2 there already, 0 to run"
expect 0 sweep base.json --grid transport=local --grid clients=1 --grid cns=1 --out "$folder" --slurm real.sh
sbatch real.sh >/dev/null
soon is_empty
expect 0 sweep base.json --grid transport=local --grid clients=1 --grid cns=1 --out "$folder"
holds err "1 there already, 0 to run"
