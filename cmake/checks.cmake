# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Checks of the sources, as tests with the label `check`.
function(ib_check name timeout)  # ARGN: the command
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS check TIMEOUT ${timeout} SKIP_RETURN_CODE 77)
endfunction()

set(scripts ${CMAKE_SOURCE_DIR}/scripts)
ib_check(check_layers 60 /usr/bin/python3 ${scripts}/check_layers.py)
ib_check(check_house_rules 60 /usr/bin/python3 ${scripts}/tidy.py)
ib_check(check_classes 60 /usr/bin/python3 ${scripts}/check_classes.py)
ib_check(check_house_rules_test 60 /usr/bin/python3 ${scripts}/tidy_test.py)
ib_check(check_format 300 ${scripts}/format --check)
ib_check(check_headers 900 ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target all_verify_interface_header_sets)
ib_check(check_clang_tidy 3600 /usr/bin/python3 ${scripts}/clang_tidy.py ${CMAKE_BINARY_DIR})
# They compile every header, or read every source, by itself: 11 and 60 min. Only scripts/test --all runs them.
set_tests_properties(check_headers check_clang_tidy PROPERTIES PROCESSORS 2 LABELS "check;tidy")
