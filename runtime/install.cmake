# What `cmake --install` puts in place: both libraries, the headers, cltrain.pc and the CMake
# package. All of it can be moved afterwards: paths are relative to the files themselves.

include(CMakePackageConfigHelpers)

# What the static library needs besides, as CMake packages and as pkg-config's.
set(optional_packages "")
set(optional_requires "")
set(optional_modules "")
foreach(module HIREDIS:hiredis PCRE2:libpcre2-8 JPEG:libjpeg PNG:libpng)
  string(REPLACE ":" ";" module_words ${module})
  list(GET module_words 0 library)
  list(GET module_words 1 pc_name)
  if(${library}_FOUND)
    string(APPEND optional_modules " ${module}")
    string(APPEND optional_requires " ${pc_name}")
  endif()
endforeach()
if(CLBlast_FOUND)
  string(APPEND optional_packages " CLBlast")
  string(APPEND optional_requires " clblast")
endif()
if(clFFT_FOUND)
  string(APPEND optional_packages " clFFT")
  string(APPEND optional_requires " clFFT")
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cltrain)

# Two export sets: the static library names its dependencies, and a program that links the shared
# one need not have them.
foreach(kind shared static)
  install(TARGETS cltrain_${kind} EXPORT cltrain-${kind}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT cltrain-${kind} NAMESPACE cltrain:: DESTINATION ${package_dir}
    FILE cltrain-${kind}-targets.cmake)
endforeach()

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/cltrain ${PROJECT_BINARY_DIR}/include/cltrain
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/cltrain-config.cmake.in
  ${PROJECT_BINARY_DIR}/package/cltrain-config.cmake INSTALL_DESTINATION ${package_dir}
  NO_SET_AND_CHECK_MACRO)
# Before 1.0 a new minor version may change the ABI.
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatibility SameMinorVersion)
else()
  set(compatibility SameMajorVersion)
endif()
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/cltrain-config-version.cmake
  COMPATIBILITY ${compatibility})
install(FILES ${PROJECT_BINARY_DIR}/package/cltrain-config.cmake
              ${PROJECT_BINARY_DIR}/package/cltrain-config-version.cmake
  DESTINATION ${package_dir})

set(pc_libdir ${CMAKE_INSTALL_LIBDIR})
set(pc_includedir ${CMAKE_INSTALL_INCLUDEDIR})
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
  set(pc_prefix ${CMAKE_INSTALL_PREFIX})
else()
  file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" up ${up})
  set(pc_prefix "\${pcfiledir}/${up}")
  set(pc_libdir "\${prefix}/${pc_libdir}")
endif()
if(NOT IS_ABSOLUTE ${CMAKE_INSTALL_INCLUDEDIR})
  set(pc_includedir "\${prefix}/${pc_includedir}")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/cltrain.pc.in ${PROJECT_BINARY_DIR}/package/cltrain.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/cltrain.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
