# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# cmake --install BUILD --prefix P: the programs, their libraries, and what authors of drivers need:
# P/include/softib with the headers, and a package for find_package(softib), whose target
# softib::driver has everything that a module is compiled with. Modules link nothing of ours: they
# find the I/O manager and the access layer in softibd, which loads them.
if(NOT TARGET softibd OR NOT TARGET softib-rdmav34)
  return()  # only some layers are built (IB_LAYERS)
endif()
install(TARGETS softib softibd RUNTIME DESTINATION bin)
install(TARGETS softib_preload softib-rdmav34 LIBRARY DESTINATION lib)

# Whole layers, so that no second list of headers has to be kept.
foreach(layer base verbs platform io hca al)
  get_target_property(headers ib_${layer} HEADER_SET)
  get_target_property(folder ib_${layer} SOURCE_DIR)
  foreach(header IN LISTS headers)
    if(NOT header MATCHES "_(internal|input)\\.h$")
      cmake_path(ABSOLUTE_PATH header BASE_DIRECTORY ${folder})
      install(FILES ${header} DESTINATION include/softib/${layer})
    endif()
  endforeach()
endforeach()

add_library(softib_driver INTERFACE)
set_target_properties(softib_driver PROPERTIES EXPORT_NAME driver)
target_include_directories(softib_driver INTERFACE $<INSTALL_INTERFACE:include/softib>)
target_compile_features(softib_driver INTERFACE cxx_std_20)
# Unique symbols would keep a module from ever being unmapped.
target_compile_options(softib_driver INTERFACE -fvisibility=hidden -fvisibility-inlines-hidden
  $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
install(TARGETS softib_driver EXPORT softib)
install(EXPORT softib FILE softibConfig.cmake NAMESPACE softib:: DESTINATION lib/cmake/softib)
