# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# ib_join(<variable> <target> data|control|test): replaces the sources in the variable by fewer files, which include
# several of them each (scripts/join_sources.py), if IB_JOIN has this kind. Most of the time of a compiler goes to
# headers, which it then reads once for all of them. `data` are the layers that programs load, whose speed is measured;
# in the release build they stay apart. A file that forgets an include shows in the dev build, which
# joins at most tests.
set(IB_CONTROL_LAYERS mad sa sm cm io fabric drivers services setup softibd softib_net softib)
find_program(IB_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)

function(ib_join variable target kind)
  if(NOT kind IN_LIST IB_JOIN)
    return()
  endif()
  set(all ${${variable}})
  set(kept "")
  set(joined "")
  foreach(source IN LISTS all)
    get_source_file_property(definitions ${source} COMPILE_DEFINITIONS)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE path)
    if(definitions OR NOT source MATCHES "\\.cpp$")
      list(APPEND kept ${source})
    else()
      list(APPEND joined ${path})
    endif()
  endforeach()
  list(LENGTH joined count)
  if(count LESS 2)
    return()
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${joined})  # a new name may part two sources
  execute_process(COMMAND ${IB_PYTHON} ${CMAKE_SOURCE_DIR}/scripts/join_sources.py ${CMAKE_BINARY_DIR}/joined ${target}
    "${CMAKE_SOURCE_DIR}/src;${CMAKE_SOURCE_DIR}" ${joined} OUTPUT_VARIABLE files COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE "\n" ";" files "${files}")
  list(REMOVE_ITEM files "")
  set(${variable} ${files} ${kept} PARENT_SCOPE)
endfunction()
