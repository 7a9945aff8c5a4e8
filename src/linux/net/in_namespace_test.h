// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Bodies of tests that need a network namespace of their own: in a child process, so that the test
// program stays where it is.
#pragma once

#include "linux/net/namespaces.h"
#include "linux/process/client_handle.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <string>

namespace ib::os::net {

// Returns what `body` returns, in a child process.
inline std::string in_child_process(const std::function<std::string()>& body) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child < 0) return "no process";
  if (child == 0) {
    const std::string text = body() + '\0';
    ::_exit(::write(ends[1], text.data(), text.size()) > 0 ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t got = 0; (got = ::read(ends[0], part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(got));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  if (text.empty()) return "the child died";
  text.pop_back();
  return text;
}

// The same in a network namespace of its own.
inline std::string in_network_namespace(const std::function<std::string()>& body) {
  return in_child_process([&]() -> std::string {
    if (!has_network_rights()) {
      if (const Refusal refusal = enter_new_user_namespace()) return explain(refusal);
    }
    if (const Refusal refusal = enter_new_network_namespace()) return explain(refusal);
    return body();
  });
}

// "absent", "carrier" or "no carrier", as it is now: IFF_RUNNING may come a second later.
inline std::string state_of_interface(const char* name) {
  const auto socket = own_descriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ethtool_value link{ETHTOOL_GLINK, 0};
  ifreq request{};
  std::strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
  request.ifr_data = reinterpret_cast<char*>(&link);
  if (::ioctl(socket.get(), SIOCETHTOOL, &request) != 0) return "absent";
  return link.data != 0 ? "carrier" : "no carrier";
}

}  // namespace ib::os::net

// First in such a test.
#define IB_NEED_NETWORK_NAMESPACES()                                                  \
  if (const ::ib::os::net::Refusal missing_ = ::ib::os::net::find_missing_facility()) \
  GTEST_SKIP() << ::ib::os::net::explain(missing_)
