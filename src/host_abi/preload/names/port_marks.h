// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which fabrics have servers at a TCP port of this machine.
//
// A server that binds to no particular address takes connections to every address of the machine,
// also to those of other fabrics' nodes. So each process that binds a socket to a port marks the
// port for its fabric, and a program that connects to a node looks whose port it is
// (connect_calls.cpp). A mark is an abstract AF_UNIX address, which all users can list in
// /proc/net/unix and the kernel frees with the process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ib::host_abi::preload {

// A mark as a text: "softib/port/18515/0123456789abcdef/4711".
inline constexpr std::size_t kMarkSize = 64;
std::size_t write_mark(std::uint16_t port, std::uint64_t fabric, int pid, char (&out)[kMarkSize]);

// The marks of a port in the text of /proc/net/unix, which comes in parts.
class MarkSearch {
 public:
  MarkSearch(std::uint16_t port, std::uint64_t fabric);

  void read(const char* part, std::size_t length);
  bool found_own() const { return own_; }
  bool found_other() const { return other_; }

 private:
  void on_line();

  char own_mark_[kMarkSize];  // without the process
  std::size_t own_length_;
  std::size_t port_length_;  // of its beginning that all fabrics share
  char line_[256];           // longer lines are no marks
  std::size_t line_length_ = 0;
  bool own_ = false;
  bool other_ = false;
};

}  // namespace ib::host_abi::preload
