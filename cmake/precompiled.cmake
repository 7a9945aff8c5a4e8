# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# ib_precompile(<target> library|test): the sanitizer builds parse the standard library and GoogleTest once for all
# files. The dev build does not, so that a file which forgets an include fails there.
# ib_precompiled_library is for code of layers (position independent), ib_precompiled_test for test executables:
# clang requires the same options in both halves.
set(IB_PRECOMPILED OFF)
if(IB_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL Clang AND NOT IB_FUZZ)
  set(IB_PRECOMPILED ON)
endif()

function(ib_precompile target kind)
  if(IB_PRECOMPILED)
    target_precompile_headers(${target} REUSE_FROM ib_precompiled_${kind})
  endif()
endfunction()

# ccache is to hash what a precompiled header was made from instead of the file itself, which holds times and paths of
# this build folder; for the same reason it must not store that file.
function(ib_precompiled_header target)  # ARGN: headers
  target_precompile_headers(${target} PRIVATE ${ARGN})
  set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "")
  list(TRANSFORM ARGN REPLACE "^<(.*)>$" "#include <\\1>" OUTPUT_VARIABLE includes)
  list(JOIN includes "\n" text)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir)
  file(CONFIGURE OUTPUT ${folder}/made_from.cpp CONTENT "${text}\n" @ONLY)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -fsanitize=${IB_SANITIZE} -E -P ${folder}/made_from.cpp
    OUTPUT_VARIABLE preprocessed COMMAND_ERROR_IS_FATAL ANY)
  string(SHA256 sum "${preprocessed}")
  file(CONFIGURE OUTPUT ${folder}/cmake_pch.hxx.pch.sum CONTENT "${CMAKE_CXX_COMPILER_VERSION} ${sum}\n" @ONLY)
endfunction()

if(IB_PRECOMPILED)
  set(standard "<algorithm>" "<array>" "<atomic>" "<bit>" "<chrono>" "<condition_variable>" "<deque>" "<filesystem>"
    "<fstream>" "<functional>" "<map>" "<memory>" "<mutex>" "<optional>" "<random>" "<set>" "<span>" "<sstream>"
    "<string>" "<string_view>" "<thread>" "<unordered_map>" "<utility>" "<variant>" "<vector>")
  set(empty ${CMAKE_BINARY_DIR}/precompiled.cpp)
  file(CONFIGURE OUTPUT ${empty} CONTENT "" @ONLY)
  add_library(ib_precompiled_library STATIC ${empty})
  target_link_libraries(ib_precompiled_library PRIVATE ib_options)
  ib_precompiled_header(ib_precompiled_library ${standard})
  add_executable(ib_precompiled_test EXCLUDE_FROM_ALL ${empty})
  target_link_libraries(ib_precompiled_test PRIVATE ib_test_options GTest::gmock GTest::gtest_main)
  ib_precompiled_header(ib_precompiled_test ${standard} "<gmock/gmock.h>" "<gtest/gtest.h>")
endif()
