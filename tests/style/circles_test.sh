#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# No circle of files, and no arrow upward between folders, by includes or by calls; circles.py says what counts as one.
. "$DM_SOURCE_DIR/tests/style/lib.sh"
need python3
self_test=$(python3 tests/style/circles.py --self-test) || complain "the self-test of circles.py fails: $self_test"
python3 tests/style/circles.py . || complain "circles or arrows upward, see above"
finish
