# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The packages of cmake/packages.cmake for builds that make only the libraries of another architecture: all that they
# need is in headers, which are the same for each.
find_path(IB_ASIO_DIR asio.hpp REQUIRED)
add_library(ib_asio INTERFACE)
add_library(ib::asio ALIAS ib_asio)
target_include_directories(ib_asio SYSTEM INTERFACE ${IB_ASIO_DIR})
target_compile_definitions(ib_asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED)
target_link_libraries(ib_asio INTERFACE Threads::Threads)

file(STRINGS /usr/include/fmt/core.h version_line REGEX "#define FMT_VERSION")
string(REGEX REPLACE ".* ([0-9]+)[0-9][0-9][0-9][0-9]$" "\\1" fmt_major "${version_line}")
if(fmt_major EQUAL 9)
  add_library(ib_fmt STATIC ${CMAKE_SOURCE_DIR}/cmake/fmt_static.cpp)
else()
  add_library(ib_fmt INTERFACE)
  target_compile_definitions(ib_fmt INTERFACE FMT_HEADER_ONLY)
endif()
add_library(ib::fmt ALIAS ib_fmt)
