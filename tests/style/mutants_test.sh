#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every mutant of tests/mutation can still be applied, and bad data is refused by name. run_tests.sh plants a sample.
. "$DM_SOURCE_DIR/tests/style/lib.sh"
need python3
python3 tests/mutation/mutate.py --self-test || complain "the self-test of mutate.py fails"
python3 tests/mutation/mutate.py --check || complain "a mutant does not fit the sources any more, see above"
finish
