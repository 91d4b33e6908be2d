#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# loss_test.sh with 200 seeds of every index.
DM_LOSS_SEEDS=200 exec "$(dirname "$0")/loss_test.sh"
