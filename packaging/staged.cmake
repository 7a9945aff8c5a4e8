# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# CPack runs this on the staged files of each package: what Debian's policy and that of RPM distributions want.
file(GLOB roots LIST_DIRECTORIES true "${CPACK_TEMPORARY_DIRECTORY}" "${CPACK_TEMPORARY_DIRECTORY}/*")
file(GLOB_RECURSE files LIST_DIRECTORIES false "${CPACK_TEMPORARY_DIRECTORY}/*")

if(NOT CPACK_GENERATOR STREQUAL "TGZ")
  foreach(file IN LISTS files)
    if(file MATCHES "/share/man/.*[1-8]$" OR file MATCHES "/share/doc/[^/]+/(changelog|CHANGELOG.md)$")
      execute_process(COMMAND gzip -9 --no-name --force "${file}" COMMAND_ERROR_IS_FATAL ANY)
    endif()
  endforeach()
endif()

if(CPACK_GENERATOR STREQUAL "RPM")
  # The dynamic loader's $LIB is lib64 there, and zsh has another folder.
  foreach(root IN LISTS roots)
    file(GLOB private "${root}/usr/lib/*-linux-gnu*/softib")
    foreach(folder IN LISTS private)
      file(MAKE_DIRECTORY "${root}/usr/lib64")
      file(RENAME "${folder}" "${root}/usr/lib64/softib")
      cmake_path(GET folder PARENT_PATH empty)
      file(REMOVE_RECURSE "${empty}")
    endforeach()
    if(EXISTS "${root}/usr/share/zsh/vendor-completions")
      file(RENAME "${root}/usr/share/zsh/vendor-completions" "${root}/usr/share/zsh/site-functions")
    endif()
    file(REMOVE_RECURSE "${root}/usr/share/doc/softib/changelog.gz" "${root}/usr/share/doc/softib-dev/changelog.gz")
  endforeach()
endif()
