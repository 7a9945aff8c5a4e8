# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# cmake --install BUILD --prefix P, in two components. `runtime`: the programs, their libraries, manual pages,
# completions, the user unit. `dev`, for authors of drivers: P/include/softib with the headers, the examples, and a
# package for find_package(softib), whose target softib::driver has all options of a module's compilation. Modules link
# no library of softib: softibd, which loads them, has the I/O manager and the access layer. cmake/package.cmake makes
# Debian packages of the two.
if(NOT TARGET softib-rdmav34)
  return()  # only some layers are built (IB_LAYERS)
endif()
set(IB_LIBRARY_DIR lib/${CMAKE_LIBRARY_ARCHITECTURE}/softib)
if(CMAKE_SIZEOF_VOID_P EQUAL 4)
  set(IB_LIBRARY_DIR lib/i386-linux-gnu/softib)
endif()

# The dynamic loader splits LD_PRELOAD, and libibverbs RDMAV_DRIVERS, at these characters; neither supports quotes.
# CPack stages its files below the build folder, which is not the place of their use.
install(CODE [[
if(CMAKE_INSTALL_PREFIX MATCHES "[ \t:;]" AND NOT CMAKE_INSTALL_PREFIX MATCHES "/_CPack_Packages/")
  message(FATAL_ERROR "softib cannot be installed in \"${CMAKE_INSTALL_PREFIX}\": programs find its libraries "
    "through LD_PRELOAD, which cannot name a path with a blank, ':' or ';'. Choose another --prefix.")
endif()]] ALL_COMPONENTS)

install(TARGETS softib_preload softib_sockets softib_streams softib-rdmav34 LIBRARY DESTINATION ${IB_LIBRARY_DIR} COMPONENT runtime)
get_target_property(links softib-rdmav34 IB_LINKS)
install(FILES ${links} DESTINATION ${IB_LIBRARY_DIR} COMPONENT runtime)
if(NOT TARGET softibd)
  # Libraries of another word size (preset release32), beside those of the machine's. Debian's libc6-i386 has lib32 for
  # $LIB, libc6:i386 has the other.
  install(CODE [[
set(folder "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib32")
file(MAKE_DIRECTORY "${folder}")
file(CREATE_LINK ../lib/i386-linux-gnu/softib "${folder}/softib" SYMBOLIC)]] COMPONENT runtime)
  return()
endif()
install(TARGETS softib softibd softib-net RUNTIME DESTINATION bin COMPONENT runtime)

set(IB_SYSTEMD_USER_DIR lib/systemd/user CACHE STRING "where the user unit goes, relative to the prefix")
# The unit names the programs by their absolute path, which is known when they are installed.
# A folder that runs where it is unpacked has no such path; it has a script that installs it.
install(CODE "
if(CMAKE_INSTALL_PREFIX MATCHES \"/_CPack_Packages/[^/]+/TGZ/\")
  file(INSTALL \"${CMAKE_SOURCE_DIR}/packaging/install\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}\"
    USE_SOURCE_PERMISSIONS)
else()
  set(IB_BIN_DIR \"\${CMAKE_INSTALL_PREFIX}/bin\")
  if(CMAKE_INSTALL_PREFIX MATCHES \"/_CPack_Packages/\")
    set(IB_BIN_DIR /usr/bin)
  endif()
  configure_file(\"${CMAKE_SOURCE_DIR}/packaging/softib.service.in\"
    \"${CMAKE_BINARY_DIR}/packaging/softib.service\" @ONLY)
  file(INSTALL \"${CMAKE_BINARY_DIR}/packaging/softib.service\"
    DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${IB_SYSTEMD_USER_DIR}\")
endif()
" COMPONENT runtime)

file(GLOB manuals CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/man/*.[1-8])
foreach(manual IN LISTS manuals)
  string(REGEX REPLACE ".*\\." "" section ${manual})
  install(FILES ${manual} DESTINATION share/man/man${section} COMPONENT runtime)
endforeach()
foreach(shell bash zsh fish)
  set(completion ${CMAKE_SOURCE_DIR}/completions/softib.${shell})
  if(NOT EXISTS ${completion})
    continue()
  endif()
  if(shell STREQUAL bash)
    install(FILES ${completion} DESTINATION share/bash-completion/completions RENAME softib COMPONENT runtime)
  elseif(shell STREQUAL zsh)
    install(FILES ${completion} DESTINATION share/zsh/vendor-completions RENAME _softib COMPONENT runtime)
  else()
    install(FILES ${completion} DESTINATION share/fish/vendor_completions.d COMPONENT runtime)
  endif()
endforeach()

# Whole layers, so that there is no second list of headers.
foreach(layer base verbs platform io hca al)
  get_target_property(headers ib_${layer} HEADER_SET)
  get_target_property(folder ib_${layer} SOURCE_DIR)
  foreach(header IN LISTS headers)
    if(NOT header MATCHES "_(internal|input)\\.h$")
      cmake_path(ABSOLUTE_PATH header BASE_DIRECTORY ${folder} NORMALIZE)
      file(RELATIVE_PATH place ${CMAKE_SOURCE_DIR}/src ${header})
      cmake_path(GET place PARENT_PATH place)  # a layer may have sub-folders
      install(FILES ${header} DESTINATION include/softib/${place} COMPONENT dev)
    endif()
  endforeach()
endforeach()

add_library(softib_driver INTERFACE)
set_target_properties(softib_driver PROPERTIES EXPORT_NAME driver)
target_include_directories(softib_driver INTERFACE $<INSTALL_INTERFACE:include/softib>)
target_compile_features(softib_driver INTERFACE cxx_std_20)
# With unique symbols a module could never be unmapped.
target_compile_options(softib_driver INTERFACE -fvisibility=hidden -fvisibility-inlines-hidden
  $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
install(TARGETS softib_driver EXPORT softib COMPONENT dev)
install(EXPORT softib FILE softibConfig.cmake NAMESPACE softib:: DESTINATION lib/cmake/softib COMPONENT dev)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples/ DESTINATION share/doc/softib-dev/examples COMPONENT dev)
