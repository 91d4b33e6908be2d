#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The revision that a build puts into the program: with git, with changes, from a tarball, and without anything.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
command -v git >/dev/null || missing git

# revision_is TEXT: of the folder tree.
revision_is() {
    cmake -DSOURCE="$work/tree" -DOUT="$work/revision.h" -P "$DM_SOURCE_DIR/cmake/revision.cmake" || fail "revision.cmake"
    holds revision.h "#define DM_REVISION \"$1\""
}
# The ids of commits must not depend on who runs this.
commit() {
    git -C tree add . && git -C tree -c user.name=test -c user.email=test -c commit.gpgsign=false commit -q -m test
}
git init -q tree
mkdir tree/cmake
echo one >tree/file
cp "$DM_SOURCE_DIR/cmake/revision.txt" tree/cmake/
cp "$DM_SOURCE_DIR/.gitattributes" tree/
commit
head=$(git -C tree rev-parse HEAD)
revision_is "$head"
written=$(stat -c %Y.%y revision.h)
revision_is "$head"
[ "$written" = "$(stat -c %Y.%y revision.h)" ] || fail "the header was written although it had not changed"
echo result >tree/untracked
revision_is "$head"
echo two >tree/file
revision_is "$head-dirty"
git -C tree checkout -q file
revision_is "$head"

# A tarball has the revision that it was made of, also if it is unpacked within another repository.
git -C tree archive --format=tar HEAD >archive.tar
rm -rf tree
git init -q .
mkdir tree
tar -xf archive.tar -C tree
revision_is "$head"
rm -r .git
# A copy of the files alone has none.
cp "$DM_SOURCE_DIR/cmake/revision.txt" tree/cmake/
grep -q Format tree/cmake/revision.txt || skip "the sources are a tarball themselves; the rest was tested"
revision_is unknown
rm -r tree/cmake
revision_is unknown

# The project itself, as a tarball: it can be configured, and its build knows the revision.
git -C "$DM_SOURCE_DIR" rev-parse --verify -q HEAD >/dev/null 2>&1 || skip "the sources are not in git; the rest was tested"
mkdir project
git -C "$DM_SOURCE_DIR" archive --format=tar HEAD >project.tar
tar -xf project.tar -C project
cmake -S project -B build -DCMAKE_BUILD_TYPE=Debug >cmake.log 2>&1 || fail "cmake: $(cat cmake.log)"
cmake --build build --target dm_revision >cmake.log 2>&1 || fail "cmake --build: $(cat cmake.log)"
holds build/revision/revision.h "$(git -C "$DM_SOURCE_DIR" rev-parse HEAD)\""
