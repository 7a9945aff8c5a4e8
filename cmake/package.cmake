# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# cpack --config BUILD/CPackConfig.cmake -B DIR [-G DEB|RPM|TGZ]: packages (docs/packages.md). DEB, the default, and
# RPM make softib and its headers (softib-dev, softib-devel); TGZ a folder that runs where it is unpacked.
if(NOT TARGET softibd OR NOT TARGET softib-rdmav34)
  return()
endif()
set(IB_PACKAGE_MAINTAINER "The softib authors <softib@example.org>" CACHE STRING "Maintainer: of the packages")

file(STRINGS ${CMAKE_SOURCE_DIR}/src/setup/version.h version_line REGEX "kVersion = \"")
string(REGEX REPLACE ".*\"([0-9.]+)\".*" "\\1" version "${version_line}")

# Debian's changelog of a package that is built from the tree: one entry, with the time of the last commit.
execute_process(COMMAND git -C ${CMAKE_SOURCE_DIR} log -1 --format=%cD OUTPUT_VARIABLE changed
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT changed)
  string(TIMESTAMP changed "%a, %d %b %Y %H:%M:%S +0000" UTC)
endif()
file(WRITE ${CMAKE_BINARY_DIR}/packaging/changelog "softib (${version}) unstable; urgency=medium

  * Built from the source tree; its CHANGELOG.md has what is new.

 -- ${IB_PACKAGE_MAINTAINER}  ${changed}
")
set(components runtime dev)
if(TARGET word32 AND NOT IB_UNIT_TESTS)
  list(APPEND components libs32)
endif()
foreach(component IN LISTS components)
  set(folder share/doc/softib)
  if(NOT component STREQUAL runtime)
    string(APPEND folder -${component})
  endif()
  install(FILES ${CMAKE_SOURCE_DIR}/packaging/copyright ${CMAKE_BINARY_DIR}/packaging/changelog
    DESTINATION ${folder} COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()
install(FILES ${CMAKE_SOURCE_DIR}/CHANGELOG.md ${CMAKE_SOURCE_DIR}/README.md
  DESTINATION share/doc/softib COMPONENT runtime EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME softib)
set(CPACK_PACKAGE_VERSION ${version})
set(CPACK_PACKAGE_CONTACT ${IB_PACKAGE_MAINTAINER})
set(CPACK_PACKAGE_VENDOR softib)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/packaging/staged.cmake)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_SOURCE_DIR}/packaging/generators.cmake)
set(CPACK_SYSTEM_PROCESSOR ${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME softib)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION net)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
# The provider is a plug-in that libibverbs loads, so no shared library dependency names libibverbs.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS "libibverbs1 (>= 36)")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "ibverbs-utils")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS "graphviz, perftest, rdmacm-utils, softib-dev")
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "InfiniBand host channel adapters in software, for unmodified programs
softib gives any program that uses libibverbs an InfiniBand adapter on a
machine that has none: no RDMA hardware, no kernel module, no root, and the
program is not changed. Processes of one machine exchange data through it at
the speed of memory.
.
This package has the command softib, its daemon softibd, the libibverbs
provider and the preload library that programs are started with.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME softib-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "softib (= ${version})")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "cmake, g++, libibverbs-dev")
set(CPACK_COMPONENT_DEV_DESCRIPTION "headers and examples for drivers that run in a softib fabric
Drivers of one's own run inside softibd, the daemon of a softib fabric, and
use the verbs there.
.
This package has the headers, a CMake package and three examples.")

set(CPACK_DEBIAN_LIBS32_PACKAGE_NAME softib-libs32)
set(CPACK_DEBIAN_LIBS32_PACKAGE_SECTION net)
# Either C library for 32-bit programs does: that of this architecture, or that of the other one.
set(CPACK_DEBIAN_LIBS32_PACKAGE_DEPENDS "softib (= ${version}), libc6-i386 (>= 2.34) | libc6:i386 (>= 2.34)")
set(CPACK_COMPONENT_LIBS32_DESCRIPTION "softib's libraries for 32-bit programs
With them 32-bit programs of this machine see the HCAs of a softib fabric and
exchange data with 64-bit ones.
.
This package has the libibverbs provider, the preload library and the socket
switch for i386; the programs bring their own libibverbs1:i386.")
set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_MAIN_COMPONENT runtime)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_RUNTIME_PACKAGE_NAME softib)
set(CPACK_RPM_DEV_PACKAGE_NAME softib-devel)
set(CPACK_RPM_PACKAGE_LICENSE "BSD-2-Clause OR GPL-2.0-only")
set(CPACK_RPM_RUNTIME_PACKAGE_GROUP "System Environment/Daemons")
set(CPACK_RPM_DEV_PACKAGE_GROUP "Development/Libraries")
set(CPACK_RPM_RUNTIME_PACKAGE_SUMMARY "InfiniBand host channel adapters in software")
set(CPACK_RPM_DEV_PACKAGE_SUMMARY "Headers and examples for drivers in a softib fabric")
# As above, no library names it.
set(CPACK_RPM_RUNTIME_PACKAGE_REQUIRES "libibverbs >= 36")
set(CPACK_RPM_RUNTIME_PACKAGE_SUGGESTS "graphviz, libibverbs-utils, librdmacm-utils, perftest")
set(CPACK_RPM_DEV_PACKAGE_REQUIRES "softib = ${version}")
set(CPACK_RPM_DEV_PACKAGE_ARCHITECTURE noarch)
set(CPACK_RPM_LIBS32_PACKAGE_NAME softib-libs32)
set(CPACK_RPM_LIBS32_PACKAGE_GROUP "System Environment/Libraries")
set(CPACK_RPM_LIBS32_PACKAGE_SUMMARY "softib's libraries for 32-bit programs")
set(CPACK_RPM_LIBS32_PACKAGE_REQUIRES "softib = ${version}")
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/lib64 /usr/lib/cmake /usr/lib/systemd /usr/lib/systemd/user
  /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/fish /usr/share/fish/vendor_completions.d
  /usr/share/zsh /usr/share/zsh/site-functions)
# The programs are stripped by CPack; rpmbuild need not try once more.
set(CPACK_RPM_SPEC_MORE_DEFINE "%define __strip /bin/true
%define debug_package %{nil}
%define _build_id_links none")
include(CPack)
