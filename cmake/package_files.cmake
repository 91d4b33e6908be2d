# SPDX-License-Identifier: Apache-2.0
#
# What Debian wants of a package beside the installed files: its copyright, its changes, and compressed man pages. Run by cpack
# on the tree that it packs.
if(CPACK_GENERATOR STREQUAL "DEB")
    set(root ${CPACK_TEMPORARY_DIRECTORY}/usr/share)
    set(docs ${root}/doc/dmbench)
    file(REMOVE ${docs}/LICENSE)
    file(WRITE ${docs}/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: dmbench

Files: *
Copyright: 2026 dmbench's maintainers
License: Apache-2.0
 On Debian systems the text of the license is in /usr/share/common-licenses/Apache-2.0.
")
    string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
    file(WRITE ${docs}/changelog "dmbench (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * Built from its source tree; `dmbench --version` has the revision.

 -- ${CPACK_PACKAGE_CONTACT}  ${now}
")
    file(GLOB pages ${root}/man/man*/*)
    execute_process(COMMAND gzip -9n ${docs}/changelog ${pages} COMMAND_ERROR_IS_FATAL ANY)
    file(CHMOD_RECURSE ${docs} FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
        DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endif()
