# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Toolchain: clang compiles for arm64 on amd64, with Debian's libstdc++-12-dev-arm64-cross and libc6-dev-arm64-cross;
# qemu-user-static runs what it makes (scripts/arm64, docs/testing.md). Not g++-aarch64-linux-gnu, which conflicts with
# the g++-multilib of packages.txt.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER clang)
set(CMAKE_CXX_COMPILER clang++)
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_EXE_LINKER_FLAGS_INIT -fuse-ld=lld)
set(CMAKE_MODULE_LINKER_FLAGS_INIT -fuse-ld=lld)
set(CMAKE_SHARED_LINKER_FLAGS_INIT -fuse-ld=lld)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu)
