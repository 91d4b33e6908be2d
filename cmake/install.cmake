# SPDX-License-Identifier: Apache-2.0
#
# What `cmake --install` copies. The program finds its data by the path from its executable (common/data_folder.h), so the
# installed tree can be moved, and the data have the names that they have in the source tree.
set(data ${CMAKE_INSTALL_DATAROOTDIR}/dmbench)
set(docs ${CMAKE_INSTALL_DATAROOTDIR}/doc/dmbench)

# Installing and packing need the program, not the tests that "all" builds.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
install(TARGETS dmbench RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY transport/profiles DESTINATION ${data}/transport FILES_MATCHING PATTERN "*.json")
install(DIRECTORY workloads/ycsb DESTINATION ${data}/workloads FILES_MATCHING PATTERN "*.properties")
install(DIRECTORY plots DESTINATION ${data} PATTERN ".eslintrc.json" EXCLUDE)
install(FILES results/schema.json DESTINATION ${data}/results)
install(FILES contrib/python/dmbench_results.py contrib/python/example.py contrib/python/README.md DESTINATION ${data}/contrib/python)

# Documents link to each other by relative paths.
install(FILES README.md ARCHITECTURE.md CONTRIBUTING.md LICENSE DESTINATION ${docs})
install(DIRECTORY docs DESTINATION ${docs})
foreach(folder transport/verbs transport/profiles workloads results)
    install(FILES ${folder}/README.md DESTINATION ${docs}/${folder})
endforeach()
foreach(index ${DM_INDEX_NAMES} hash_tables)
    install(FILES indexes/${index}/README.md DESTINATION ${docs}/indexes/${index} OPTIONAL)
endforeach()

# Man pages and completion, which the build makes from the tables of options.
install(DIRECTORY ${CMAKE_BINARY_DIR}/share/ DESTINATION ${CMAKE_INSTALL_DATAROOTDIR} OPTIONAL)
