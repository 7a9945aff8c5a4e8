// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requests for an open umad file (verbs/control_umad.h), with their answers and without.
#pragma once

#include "host_abi/preload/umad/umad_mirror.h"
#include "verbs/control.h"
#include "verbs/control_umad.h"

#include <cstddef>
#include <cstdint>

namespace ib::host_abi::preload {

// The numbers that the descriptor table has of umad files: the unit, and above it the file.
inline constexpr unsigned kUmadUnitBits = 6;
inline constexpr unsigned kUmadUnitMask = (1u << kUmadUnitBits) - 1;
inline constexpr std::uint32_t kUmadFileMask = (1u << (28 - kUmadUnitBits)) - 1;

// Memory of the program's, which may not be there: then they return false.
bool copy_from_program(void* to, const void* from, std::size_t size);
bool copy_to_program(void* to, const void* from, std::size_t size);

// Of this process. Returns nullptr if there is no memory for it.
UmadMirror* umad_mirror();

// Sends the request over the descriptor and waits for its answer, which the mirror gets as well.
// `memory_file`: goes with it; -1: none. Returns 0, or an error number: EIO if softibd is gone, or
// the device.
int umad_exchange(int fd, std::uint32_t file, verbs::control::UmadCode code, const void* input,
                  std::size_t size, int memory_file, verbs::control::UmadDone& done);

// A MAD of at most kUmadMostShort bytes, without an answer.
int umad_send(int fd, const void* mad, std::size_t size);

// A message that was taken by mistake goes back, with its file if that is not -1.
void umad_put_back(int fd, const void* message, std::size_t size, int memory_file);

// The error number for a status of softibd's.
int umad_error(std::uint32_t status);

}  // namespace ib::host_abi::preload
