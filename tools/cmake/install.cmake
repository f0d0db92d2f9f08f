# What is installed: the program with its page, and the library for CMake's find_package
# and for pkg-config. The library is an archive: whoever links it links what it stands on.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS gexec_program RUNTIME)
install(FILES ${PROJECT_SOURCE_DIR}/tools/gexec.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(TARGETS gexec ARCHIVE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/gexec
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(gx_package ${CMAKE_INSTALL_LIBDIR}/cmake/gexec)
configure_package_config_file(
    ${CMAKE_CURRENT_LIST_DIR}/gexec-config.cmake.in
    ${PROJECT_BINARY_DIR}/gexec-config.cmake INSTALL_DESTINATION ${gx_package}
    PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gexec-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gexec-config.cmake
              ${PROJECT_BINARY_DIR}/gexec-config-version.cmake DESTINATION ${gx_package})

set(gx_pc ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH GX_PC_PREFIX /${gx_pc} /)
string(REGEX REPLACE "/$" "" GX_PC_PREFIX "${GX_PC_PREFIX}")
set(GX_PC_LIBS "-lm -ldl -pthread")
if(GX_HAVE_CUDA)
    string(PREPEND GX_PC_LIBS "-L${gx_cublaslt_folder} -lcublasLt -lcudart_static -lrt ")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/gexec.pc.in ${PROJECT_BINARY_DIR}/gexec.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/gexec.pc DESTINATION ${gx_pc})
