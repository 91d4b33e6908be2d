# SPDX-License-Identifier: Apache-2.0
#
# cmake -DSOURCE=<source tree> -DOUT=<header> -P revision.cmake
# Writes the header with the revision of the sources, at each build, and leaves it alone if it has not changed. With git it is
# the commit, with "-dirty" behind it if files that git tracks differ from that commit. A tarball of `git archive` has the
# commit in cmake/revision.txt. Otherwise it is "unknown".
set(revision unknown)
find_program(GIT git)
set(git ${CMAKE_COMMAND} -E env GIT_OPTIONAL_LOCKS=0 ${GIT} -c safe.directory=${SOURCE} -C ${SOURCE})
if(GIT AND EXISTS ${SOURCE}/.git)
    execute_process(COMMAND ${git} rev-parse --verify HEAD OUTPUT_VARIABLE head RESULT_VARIABLE failed
        OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    execute_process(COMMAND ${git} status --porcelain --untracked-files=no OUTPUT_VARIABLE changes
        RESULT_VARIABLE status_failed ERROR_QUIET)
    if(NOT failed AND NOT status_failed)
        set(revision ${head})
        if(NOT changes STREQUAL "")
            string(APPEND revision "-dirty")
        endif()
    endif()
elseif(EXISTS ${SOURCE}/cmake/revision.txt)
    file(STRINGS ${SOURCE}/cmake/revision.txt line LIMIT_COUNT 1)
    if(line MATCHES "^[0-9a-f]+$")
        set(revision ${line})
    endif()
endif()
set(text "/* Written by cmake/revision.cmake. */\n#define DM_REVISION \"${revision}\"\n")
set(old "")
if(EXISTS ${OUT})
    file(READ ${OUT} old)
endif()
if(NOT text STREQUAL old)
    file(WRITE ${OUT} "${text}")
endif()
