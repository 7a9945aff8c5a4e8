# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# CPack runs this on the staged files: Debian's policy wants manual pages and changelogs compressed.
file(GLOB_RECURSE files LIST_DIRECTORIES false "${CPACK_TEMPORARY_DIRECTORY}/*")
foreach(file IN LISTS files)
  if(file MATCHES "/share/man/.*[1-8]$" OR file MATCHES "/share/doc/[^/]+/(changelog|CHANGELOG.md)$")
    execute_process(COMMAND gzip -9 --no-name --force "${file}" COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
