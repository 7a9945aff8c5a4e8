// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// File descriptors that close themselves, and reading whole small files.
#pragma once

#include "platform/control_channel.h"

#include <cstddef>
#include <string>

namespace ib::softib {

using Fd = platform::NativeHandle;
Fd make_fd(int fd);

// Gives a descriptor to the program that will replace this one: open across exec, at a high number,
// which disturbs no program.
void hand_over(Fd& fd);

// Returns a whole file (at most `limit` bytes of it); empty if it cannot be read.
std::string read_file(const std::string& path, std::size_t limit = 1u << 20);
// Returns a whole open file, from its start.
std::string read_fd(const Fd& fd);

// The last `lines` lines of a text file after byte `from`, each with a new line.
std::string last_lines(const std::string& path, std::size_t lines, std::size_t from = 0);

}  // namespace ib::softib
