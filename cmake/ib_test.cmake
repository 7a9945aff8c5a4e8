# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# ib_test(<name> LABEL unit|conformance SOURCES ... [DEPENDS <layers>] [LIBS ...] [ARGS ...] [TIMEOUT s] [ONE_THREAD]
#         [NO_SANITIZER])
#   One GoogleTest executable, <build>/test-bin/<name>, and one ctest. ONE_THREAD: it has no second thread
#   (tests/one_thread.cpp ends it otherwise), so ThreadSanitizer would find nothing and does not get it. NO_SANITIZER:
#   it cannot run under one; the release build has these.
# ib_system_test(<name> SCRIPT <file.py|file.sh> [ARGS ...] TIMEOUT s [SLOTS n] [LOCKS ...])
#   A script against the built programs. SLOTS: whole half cores that its programs use on average, as measured on two
#   cores, or 1 (the default). scripts/test has one more such place than there are halves. LOCKS: what the machine has
#   once.
#   Environment: SOFTIB_BUILD, SOFTIB_BIN, SOFTIB_LIB, SOFTIB_SOURCE.
#   Exit 77 after printing the reason = skipped. Not registered under sanitizers: it would preload
#   instrumented libraries into foreign programs.
set(IB_TEST_ENVIRONMENT "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1"
  "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1"
  "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1")
set(IB_TEST_RUNNER ${CMAKE_CROSSCOMPILING_EMULATOR})
set(IB_TIMEOUT_FACTOR 1)
if(IB_SANITIZE OR CMAKE_CROSSCOMPILING)
  set(IB_TIMEOUT_FACTOR 5)
endif()
if(IB_SANITIZE MATCHES thread)
  # ThreadSanitizer of gcc 12 / clang 14 aborts at start when the kernel randomises more than 28 bits.
  execute_process(COMMAND setarch -R true RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(failed EQUAL 0)
    set(IB_TEST_RUNNER setarch -R)
  endif()
endif()

function(ib_register name label timeout)  # ARGN: the command
  add_test(NAME ${name} COMMAND ${ARGN})
  if(NOT timeout)
    set(timeout 120)
  endif()
  math(EXPR timeout "${timeout} * ${IB_TIMEOUT_FACTOR}")
  set_tests_properties(${name} PROPERTIES LABELS "${label}" TIMEOUT ${timeout}
    SKIP_RETURN_CODE 77 ENVIRONMENT "${IB_TEST_ENVIRONMENT}")
  if(label STREQUAL "conformance")  # the longest begin first
    set_tests_properties(${name} PROPERTIES COST 100)
  endif()
endfunction()

function(ib_test name)
  cmake_parse_arguments(PARSE_ARGV 1 A "ONE_THREAD;NO_SANITIZER" "LABEL;TIMEOUT" "SOURCES;DEPENDS;LIBS;ARGS")
  if(A_UNPARSED_ARGUMENTS OR NOT A_LABEL MATCHES "^(unit|conformance)$")
    message(FATAL_ERROR "ib_test(${name}): needs LABEL unit or conformance; unknown: '${A_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT BUILD_TESTING OR IB_FUZZ OR NOT (IB_UNIT_TESTS OR A_NO_SANITIZER)
      OR (A_NO_SANITIZER AND IB_SANITIZE) OR (A_ONE_THREAD AND IB_SANITIZE MATCHES thread))
    return()
  endif()
  ib_layer_targets(needs ${name} ${A_DEPENDS})
  ib_join(A_SOURCES ${name} test)
  add_executable(${name} ${A_SOURCES})
  if(A_ONE_THREAD)
    target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/one_thread.cpp)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test-bin)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${needs} ib_test_options ib_source_files ${A_LIBS} GTest::gmock GTest::gtest_main)
  ib_precompile(${name} test)
  ib_register(${name} ${A_LABEL} "${A_TIMEOUT}" ${IB_TEST_RUNNER} $<TARGET_FILE:${name}> ${A_ARGS})
endfunction()

function(ib_system_test name)
  cmake_parse_arguments(PARSE_ARGV 1 A "" "SCRIPT;TIMEOUT;SLOTS" "ARGS;LOCKS")
  if(A_UNPARSED_ARGUMENTS OR NOT A_SCRIPT OR NOT A_TIMEOUT)
    message(FATAL_ERROR "ib_system_test(${name}): needs SCRIPT <file> TIMEOUT <s>; unknown: '${A_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT BUILD_TESTING OR IB_SANITIZE OR CMAKE_CROSSCOMPILING)
    return()
  endif()
  cmake_path(ABSOLUTE_PATH A_SCRIPT)
  cmake_path(GET A_SCRIPT EXTENSION LAST_ONLY kind)
  set(interpreter bash)
  if(kind STREQUAL ".py")
    set(interpreter /usr/bin/python3)  # a python earlier in PATH may lack Debian's pyverbs
  endif()
  ib_register(${name} system "${A_TIMEOUT}" ${interpreter} ${A_SCRIPT} ${A_ARGS})
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT SOFTIB_BUILD=${CMAKE_BINARY_DIR}
    SOFTIB_BIN=${CMAKE_BINARY_DIR}/bin SOFTIB_LIB=${CMAKE_BINARY_DIR}/lib
    SOFTIB_SOURCE=${CMAKE_SOURCE_DIR} PYTHONDONTWRITEBYTECODE=1)
  set_tests_properties(${name} PROPERTIES RESOURCE_LOCK "${A_LOCKS}")
  # Those that take many places start first, then those that may take long; the others fill the places beside them.
  if(NOT A_SLOTS)
    set(A_SLOTS 1)
  endif()
  math(EXPR cost "1000 * ${A_SLOTS} + ${A_TIMEOUT}")
  set_tests_properties(${name} PROPERTIES PROCESSORS ${A_SLOTS} COST ${cost})
endfunction()

# Google Benchmark, <build>/test-bin/<name>; its ctest only checks that it runs.
function(ib_benchmark name)
  cmake_parse_arguments(PARSE_ARGV 1 A "" "" "DEPENDS;LIBS")
  if(NOT BUILD_TESTING OR IB_SANITIZE OR CMAKE_CROSSCOMPILING)
    return()
  endif()
  ib_layer_targets(needs ${name} ${A_DEPENDS})
  add_executable(${name} ${A_UNPARSED_ARGUMENTS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test-bin)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE ${needs} ib_options ${A_LIBS} benchmark::benchmark_main)
  ib_register(${name} unit 120 $<TARGET_FILE:${name}> --benchmark_min_time=0.001)
endfunction()

# A fuzzer defines LLVMFuzzerTestOneInput. With IB_FUZZ it is linked with libFuzzer, else with fuzz/replay_main.cpp,
# which replays fuzz/corpus/<name>/* and a few seeded inputs. Both are a ctest.
function(ib_fuzzer name source)  # ARGN: what to link
  if(NOT BUILD_TESTING OR (NOT IB_UNIT_TESTS AND NOT IB_FUZZ) OR IB_SANITIZE MATCHES thread)  # it has one thread
    return()
  endif()
  set(corpus ${CMAKE_SOURCE_DIR}/fuzz/corpus/${name})
  add_executable(${name} ${source})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz-bin)
  target_link_libraries(${name} PRIVATE ${ARGN} ib_options)
  if(IB_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set(found ${CMAKE_BINARY_DIR}/corpus/${name})
    file(MAKE_DIRECTORY ${found} ${CMAKE_BINARY_DIR}/crashes)
    if(NOT IS_DIRECTORY ${corpus})
      set(corpus "")
    endif()
    ib_register(${name} fuzz 120 $<TARGET_FILE:${name}> -seed=1 -max_total_time=10 -timeout=10
      -artifact_prefix=${CMAKE_BINARY_DIR}/crashes/${name}- ${found} ${corpus})
  else()
    target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/fuzz/replay_main.cpp)
    ib_register(${name} fuzz 120 ${IB_TEST_RUNNER} $<TARGET_FILE:${name}> ${corpus})
  endif()
endfunction()
