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
  # The dynamic loader's $LIB is lib64 there, or lib in 32-bit programs, and zsh has another folder.
  foreach(root IN LISTS roots)
    file(GLOB private "${root}/usr/lib/*-linux-gnu*/softib")
    foreach(folder IN LISTS private)
      set(place "${root}/usr/lib64")
      if(folder MATCHES "/i386-linux-gnu/")
        set(place "${root}/usr/lib")
      endif()
      file(MAKE_DIRECTORY "${place}")
      file(RENAME "${folder}" "${place}/softib")
      cmake_path(GET folder PARENT_PATH empty)
      file(REMOVE_RECURSE "${empty}")
    endforeach()
    file(REMOVE_RECURSE "${root}/usr/lib32")
    if(EXISTS "${root}/usr/share/zsh/vendor-completions")
      file(RENAME "${root}/usr/share/zsh/vendor-completions" "${root}/usr/share/zsh/site-functions")
    endif()
    file(REMOVE_RECURSE "${root}/usr/share/doc/softib/changelog.gz" "${root}/usr/share/doc/softib-dev/changelog.gz"
      "${root}/usr/share/doc/softib-libs32/changelog.gz")
  endforeach()
endif()

if(CPACK_GENERATOR STREQUAL "DEB")
  foreach(root IN LISTS roots)
    if(EXISTS "${root}/usr/lib/i386-linux-gnu")
      file(WRITE "${root}/usr/share/lintian/overrides/softib-libs32"
        "# Both are where the dynamic loaders of 32-bit programs look, of libc6:i386 and of libc6-i386.
softib-libs32: triplet-dir-and-architecture-mismatch *
softib-libs32: non-multi-arch-lib-dir *
")
    endif()
  endforeach()
endif()
