# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Every external package, found once and here, so that all folders have its targets. packages.txt has the reason for
# each. Install them with scripts/setup.
# Targets for LIBS: Threads::Threads CLI11::CLI11 nlohmann_json::nlohmann_json
#   ib::fmt ib::spdlog ib::asio ib::toml PkgConfig::{libibverbs,librdmacm} dl rt
find_package(Threads REQUIRED)
if(CMAKE_CROSSCOMPILING OR CMAKE_SIZEOF_VOID_P EQUAL 4)
  include(${CMAKE_CURRENT_LIST_DIR}/packages_cross.cmake)
  return()
endif()
if(BUILD_TESTING)
  find_package(GTest REQUIRED)
  find_package(benchmark REQUIRED)
endif()
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PkgConfig REQUIRED)
foreach(module libibverbs librdmacm)
  pkg_check_modules(${module} REQUIRED IMPORTED_TARGET ${module})
endforeach()

find_path(IB_ASIO_DIR asio.hpp REQUIRED)
add_library(ib_asio INTERFACE)
add_library(ib::asio ALIAS ib_asio)
target_include_directories(ib_asio SYSTEM INTERFACE ${IB_ASIO_DIR})
target_compile_definitions(ib_asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED)
target_link_libraries(ib_asio INTERFACE Threads::Threads)

find_path(IB_TOML_DIR toml++/toml.h REQUIRED)
add_library(ib_toml INTERFACE)
add_library(ib::toml ALIAS ib_toml)
target_include_directories(ib_toml SYSTEM INTERFACE ${IB_TOML_DIR})
target_compile_definitions(ib_toml INTERFACE TOML_EXCEPTIONS=0)

# The part of fmt 9 that is not a template, compiled once: header-only it is compiled in each file that formats, which
# doubles their time, and Debian's shared library would bring a second libstdc++ into programs (cmake/ib_library.cmake).
if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  add_library(ib_fmt STATIC ${CMAKE_SOURCE_DIR}/cmake/fmt_static.cpp)
  add_library(ib::fmt ALIAS ib_fmt)
else()
  add_library(ib::fmt ALIAS fmt::fmt-header-only)
endif()

# Debian 12 and 13 have different versions of spdlog and fmt, so a program that links them runs on one only. And Debian
# 13's library of spdlog wants the newest libstdc++: g++-13 links no program with it.
if(IB_SELF_CONTAINED)
  add_library(ib_spdlog INTERFACE)  # headers only; not spdlog::spdlog_header_only, which links fmt::fmt
  target_compile_definitions(ib_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
  target_link_libraries(ib_spdlog INTERFACE ib::fmt Threads::Threads)
  add_library(ib::spdlog ALIAS ib_spdlog)
else()
  add_library(ib::spdlog ALIAS spdlog::spdlog)
endif()
