# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The targets of cmake/packages.cmake in a build for another architecture (cmake/arm64.cmake, preset release32). The
# machine has no compiled libraries for it, so this takes the headers, which are the same everywhere, and compiles the
# rest. The first two are for the programs alone, which the libraries of 32 bits do without.
find_package(CLI11 QUIET)
find_package(nlohmann_json QUIET)
if(BUILD_TESTING)
  set(INSTALL_GTEST OFF)
  add_subdirectory(/usr/src/googletest ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL SYSTEM)
endif()

find_path(IB_ASIO_DIR asio.hpp REQUIRED)
add_library(ib_asio INTERFACE)
add_library(ib::asio ALIAS ib_asio)
target_compile_definitions(ib_asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED)
target_link_libraries(ib_asio INTERFACE Threads::Threads)

find_path(IB_TOML_DIR toml++/toml.h REQUIRED)
add_library(ib_toml INTERFACE)
add_library(ib::toml ALIAS ib_toml)
target_compile_definitions(ib_toml INTERFACE TOML_EXCEPTIONS=0)

# The target's libibverbs, for the provider's unit tests: a root folder with its packages (scripts/arm64 makes one).
set(IB_TARGET_ROOT "" CACHE PATH "root folder of the target's shared libraries")
find_library(IB_TARGET_VERBS libibverbs.so.1 PATHS ${IB_TARGET_ROOT}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} NO_DEFAULT_PATH)
if(IB_TARGET_ROOT AND IB_TARGET_VERBS)
  add_library(PkgConfig::libibverbs INTERFACE IMPORTED)
  target_link_libraries(PkgConfig::libibverbs INTERFACE ${IB_TARGET_VERBS})
endif()

add_library(ib_fmt STATIC ${CMAKE_SOURCE_DIR}/cmake/fmt_static.cpp)
add_library(ib::fmt ALIAS ib_fmt)

add_library(ib_spdlog INTERFACE)
target_compile_definitions(ib_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
target_link_libraries(ib_spdlog INTERFACE ib_fmt Threads::Threads)
add_library(ib::spdlog ALIAS ib_spdlog)
