// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One command for /dev/infiniband/rdma_cm on its way to softibd and back: through the mailbox of a
// command connection, or its socket (docs/design/0016-rdma-cm-device.md).
#pragma once

#include "host_abi/preload/device_files/own_stack.h"
#include "verbs/control.h"
#include "verbs/control_rdma_cm.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace ib::host_abi::preload {

// The beginning of a command, and of GET_EVENT the whole.
struct CommandHead {
  std::uint32_t code = 0;
  std::uint16_t in = 0;
  std::uint16_t out = 0;
  std::uint64_t response = 0;
};

// One command of the program, and its process.
struct Command {
  Command(OwnStack of_caller, std::uint32_t of_file, const void* bytes, std::size_t count);

  // Reads `copy`. Returns its number, or 0 if it cannot be read: then the kernel finds out why, as
  // it sends the command.
  std::uint32_t read_code();
  // Returns nothing if `copy` has less than that.
  std::optional<CommandHead> head() const;
  // Returns false if the program has no such memory.
  bool copy_to(void* to, const void* from, std::size_t count) const;

  const void* data;
  std::size_t size;
  std::uint32_t file;
  std::uint32_t turn = 0;  // AnswersAhead
  int process;
  OwnStack stack;  // of the thread that sends it
  // The kernel copies between addresses of this process: a filter of system calls may forbid it.
  bool may_copy = false;
  bool is_copied = false;  // `copy` has all that softibd looks at
  bool may_wait = false;   // rdma_cm_in_flag::kMayWait
  std::array<std::uint8_t, verbs::control::kRdmaCmBytes> copy;
};

// Goes with a command when softibd needs it.
struct Extra {
  const void* option = nullptr;
  std::uint32_t option_size = 0;
  std::uint32_t from_file = 0;
  int from_fd = -1;
};

// The answer without its data, which then go to where the program wants them.
struct Answer {
  verbs::control::ReplyHeader header;
  verbs::control::RdmaCmOut out;
};

// Returns 0 if softibd has executed the command (or needs more for it), or an error number. The
// data of the answer are where the program wants them then.
int exchange(Command& command, const Extra& extra, Answer& answer);

inline void* pointer_of(std::uint64_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the ABI has pointers as 64-bit integers
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

}  // namespace ib::host_abi::preload
