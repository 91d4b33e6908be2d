# SPDX-License-Identifier: Apache-2.0
#
# `cpack -G DEB` and `cpack -G TGZ` in a build: the tree that `cmake --install` makes, as a Debian package and as a tarball.
set(CPACK_PACKAGE_NAME dmbench)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "benchmark of range indexes for disaggregated memory")
set(CPACK_PACKAGE_DESCRIPTION "Compares trees, learned indexes and hash tables that are stored in remote
memory and reached with RDMA: in a deterministic model of a network, over
shared memory, and with libibverbs. Checks that they are linearizable, draws
the figures of their papers and judges the papers' claims.")
# Who makes a package for others gives a name and an address: cpack -D CPACK_PACKAGE_CONTACT="NAME <ADDRESS>"
set(CPACK_PACKAGE_CONTACT "dmbench's maintainers <root@localhost>")
set(CPACK_GENERATOR DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON) # what the libraries need, by dpkg-shlibdeps
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "gnuplot-nox | gnuplot, fonts-dejavu-core, ibverbs-providers")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "openmpi-bin, perftest, python3-pandas")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/package_files.cmake)
include(CPack)
