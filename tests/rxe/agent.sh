#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# agent.sh HOST COMMAND...: what mpirun takes for a remote shell (plm_rsh_agent) in the machines of hosts.sh. Leaves the
# command in the folder that they share, where agent_serve of lib.sh on that machine takes it, and ends with its status.
host=$1
shift
task=/run/link/task.$host.$$
echo "$*" >"$task.new"
mv "$task.new" "$task"
while [ ! -e "$task.status" ]; do
    sleep 0.2
done
cat "$task.output"
exit "$(cat "$task.status")"
