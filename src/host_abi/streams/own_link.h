// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// streams::Link by system calls at a descriptor of the program's. No lock, no state: any thread.
#pragma once

#include "streams/end.h"

#include <cstdint>
#include <optional>

namespace ib::host_abi::stream_switch {

class OwnLink final : public streams::Link {
 public:
  explicit OwnLink(int fd) : fd_(fd) {}
  bool ring() override;
  Taken take(std::uint32_t most) override;
  bool is_writable() override;
  bool has_hung_up() override;
  void shut_write() override;
  void shut_read() override;
  int fd() const { return fd_; }

 private:
  Taken take_in_sandbox(std::uint32_t most);
  short look(short events) const;

  int fd_;
};

// Which end a link belongs to, by its name; nothing: the descriptor is no link.
struct LinkName {
  std::uint64_t stream = 0;
  std::uint32_t end = 0;
};
std::optional<LinkName> name_of_link(int fd);

}  // namespace ib::host_abi::stream_switch
