# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# A build for 32 bits beside the other one (preset release32), in build/PRESET/32: in the release build of the libraries
# that 32-bit programs load, the component `libs32`; in the dev build of the peer of the conformance tests.
# A machine whose compiler makes no 32-bit programs (g++-multilib) does without.
if(IB_LAYERS OR IB_SANITIZE OR IB_FUZZ OR CMAKE_CROSSCOMPILING OR NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64"
   OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  return()
endif()
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_FLAGS -m32)
check_cxx_source_compiles("#include <string>\nint main(int n, char** words) { return std::string(words[n - 1]).empty(); }"
  IB_MAKES_32_BIT_PROGRAMS)
unset(CMAKE_REQUIRED_FLAGS)
if(NOT IB_MAKES_32_BIT_PROGRAMS)
  message(STATUS "no libraries for 32-bit programs: the compiler makes none (package g++-multilib)")
  return()
endif()

set(IB_BUILD_32 ${CMAKE_BINARY_DIR}/32)
set(targets conformance_peer)
if(NOT IB_UNIT_TESTS)
  set(targets softib_preload softib_sockets softib_streams softib-rdmav34)
endif()
# Its steps stand in the terminal, so that a failure shows as one of this build does. It begins when softibd is built:
# two builds at once would share the machine's cores and memory.
include(ExternalProject)
ExternalProject_Add(word32 SOURCE_DIR ${CMAKE_SOURCE_DIR} BINARY_DIR ${IB_BUILD_32} PREFIX ${CMAKE_BINARY_DIR}/32-steps
  CONFIGURE_COMMAND ${CMAKE_COMMAND} -S ${CMAKE_SOURCE_DIR} --preset release32 -B ${IB_BUILD_32}
  BUILD_COMMAND ${CMAKE_COMMAND} --build ${IB_BUILD_32} --target ${targets}
  INSTALL_COMMAND "" BUILD_ALWAYS ON USES_TERMINAL_CONFIGURE ON USES_TERMINAL_BUILD ON DEPENDS softibd)

if(TARGET softib_preload AND NOT IB_UNIT_TESTS)
  install(CODE "
set(strip \"\")
if(CMAKE_INSTALL_DO_STRIP)
  set(strip --strip)
endif()
execute_process(COMMAND \"${CMAKE_COMMAND}\" --install \"${IB_BUILD_32}\" --prefix \"\${CMAKE_INSTALL_PREFIX}\" \${strip}
  COMMAND_ERROR_IS_FATAL ANY)
# The folder of the tar.gz may be used on any distribution: each loader's $LIB leads to the libraries of its word size.
if(CMAKE_INSTALL_PREFIX MATCHES \"/_CPack_Packages/[^/]+/TGZ/\")
  set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
  file(MAKE_DIRECTORY \"\${folder}/lib64\")
  file(CREATE_LINK ../lib/x86_64-linux-gnu/softib \"\${folder}/lib64/softib\" SYMBOLIC)
  file(CREATE_LINK i386-linux-gnu/softib \"\${folder}/lib/softib\" SYMBOLIC)
endif()
" COMPONENT libs32)
endif()
