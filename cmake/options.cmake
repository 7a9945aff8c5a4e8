# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# ib_options: the compiler options of all our code. ib_test_options: those of tests.
add_library(ib_options INTERFACE)
target_compile_options(ib_options INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion
  -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-align -Woverloaded-virtual -Wswitch-enum
  $<$<BOOL:${IB_WERROR}>:-Werror>
  $<$<CXX_COMPILER_ID:Clang>:-Wnull-dereference>  # gcc 12's version reports impossible paths
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-stringop-overflow>    # gcc 12 is wrong about std::string (its bug 105651)
  $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>  # unique symbols would tie a plug-in to its host's copy
)
if(CMAKE_SIZEOF_VOID_P EQUAL 4)
  # Device memory is longer than a file of 31 bits. The preload library and the socket switch stand in for functions of
  # both sizes, and name the types of each.
  target_compile_definitions(ib_options INTERFACE
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:IB_BOTH_OFFSETS>>>:_FILE_OFFSET_BITS=64>)
  # Lengths of 64 bits that were compared with a region's become size_t.
  target_compile_options(ib_options INTERFACE -Wno-conversion)
endif()
if(IB_SANITIZE)
  target_compile_options(ib_options INTERFACE -fsanitize=${IB_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer
    $<$<CXX_COMPILER_ID:GNU>:-Wno-error=maybe-uninitialized -Wno-error=tsan>)
  target_link_options(ib_options INTERFACE -fsanitize=${IB_SANITIZE})
endif()

add_library(ib_test_options INTERFACE)
target_link_libraries(ib_test_options INTERFACE ib_options)
if(IB_SANITIZE AND NOT IB_FUZZ)
  # Most of the time of a sanitizer build went to optimising the tests; what they test is optimised.
  target_compile_options(ib_test_options INTERFACE -O0)
endif()
