// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads /proc: the listening sockets of each network namespace, and which process holds each.
#include "softib/pages/listeners.h"

#include "setup/fd.h"
#include "softib/terminal/columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>

namespace ib::softib {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kListening = "0A";  // TCP_LISTEN in the kernel's tables

template <class T>
T number_at(std::string_view text, int base = 10) {
  T value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

// The port of "0.0.0.0:7471" and "[::]:7471"; in the kernel's tables it is hexadecimal.
std::uint16_t port_of(std::string_view address, int base = 10) {
  const std::size_t colon = address.rfind(':');
  return colon == std::string_view::npos
             ? std::uint16_t{0}
             : number_at<std::uint16_t>(address.substr(colon + 1), base);
}

// A variable in the environment with which a process was started.
std::string variable(std::string_view environment, std::string_view name) {
  while (!environment.empty()) {
    const std::size_t end = std::min(environment.find('\0'), environment.size());
    const std::string_view entry = environment.substr(0, end);
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('=')) {
      return std::string(entry.substr(name.size() + 1));
    }
    environment.remove_prefix(std::min(end + 1, environment.size()));
  }
  return {};
}

std::string link_of(const fs::path& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  return error ? std::string() : target.string();
}

std::vector<pid_t> processes() {
  std::vector<pid_t> pids;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const auto pid = number_at<pid_t>(entry.path().filename().string());
    if (pid > 0) pids.push_back(pid);
  }
  return pids;
}

std::vector<ListeningSocket> sockets_seen_by(const std::string& process) {
  std::vector<ListeningSocket> all;
  for (const char* table : {"tcp", "tcp6"}) {
    const auto some = listening_sockets(read_file(fmt::format("/proc/{}/net/{}", process, table)));
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

// The listening sockets of each network namespace, read once.
class SocketTables {
 public:
  const std::map<std::uint64_t, std::uint16_t>& of(pid_t pid) {
    const std::string space = link_of(fmt::format("/proc/{}/ns/net", pid));
    const auto [found, is_new] = by_space_.try_emplace(space);
    if (!is_new || space.empty()) return found->second;
    for (const ListeningSocket& one : sockets_seen_by(std::to_string(pid))) {
      found->second[one.inode] = one.port;
    }
    return found->second;
  }

 private:
  std::map<std::string, std::map<std::uint64_t, std::uint16_t>> by_space_;
};

// The ports on which a process listens; the inodes of their sockets are added to `held`.
std::set<std::uint16_t> ports_of(pid_t pid, SocketTables& tables, std::set<std::uint64_t>& held) {
  constexpr std::string_view kSocket = "socket:[";
  std::set<std::uint16_t> ports;
  const auto& sockets = tables.of(pid);
  if (sockets.empty()) return ports;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", pid), error)) {
    const std::string target = link_of(entry.path());
    if (!target.starts_with(kSocket)) continue;
    const auto inode = number_at<std::uint64_t>(std::string_view(target).substr(kSocket.size()));
    const auto found = sockets.find(inode);
    if (found == sockets.end()) continue;
    ports.insert(found->second);
    held.insert(inode);
  }
  return ports;
}

void place(Listener& listener, const Json& state, const std::string& socket) {
  const std::string environment = read_file(fmt::format("/proc/{}/environ", listener.pid));
  listener.socket = variable(environment, "SOFTIB_SOCKET");
  listener.node = variable(environment, "SOFTIB_NODE");
  listener.is_switched = !variable(environment, "SOFTIB_SOCKETS").empty();
  if (!listener.socket.empty()) return;
  for (const Json& client : list_of(state, "clients")) {
    if (number_of(client, "pid") != static_cast<std::uint64_t>(listener.pid)) continue;
    listener.socket = socket;
    listener.node = text_of(client, "node", "");
  }
}

std::string fabric_of(const std::string& socket) {
  return fs::path(socket).stem().string();
}

}  // namespace

std::string name_of(const Listener& listener) {
  if (listener.other_user) return fmt::format("a program of uid {}", *listener.other_user);
  if (listener.pid == 0) return "the driver " + listener.program;
  return fmt::format("{} (pid {})", listener.program, listener.pid);
}

std::vector<ListeningSocket> listening_sockets(const std::string& table) {
  std::vector<ListeningSocket> sockets;
  std::istringstream lines(table);
  std::string line;
  std::getline(lines, line);  // the names of the columns
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, retransmits, uid, timeout;
    ListeningSocket one;
    words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> uid >>
        timeout >> one.inode;
    if (!words || state != kListening) continue;
    one.port = port_of(local, 16);
    one.uid = number_at<std::uint32_t>(uid);
    sockets.push_back(one);
  }
  return sockets;
}

std::vector<Listener> rdma_listeners(const Json& state, const std::string& socket) {
  std::vector<Listener> listeners;
  for (const Json& one : list_of(state, "rdma_cm")) {
    if (text_of(one, "state") != "listening") continue;
    Listener listener;
    listener.port = port_of(text_of(one, "local", ""));
    listener.how = text_of(one, "port_space", "") == "SDP" ? "TCP, streams" : "librdmacm";
    listener.program = text_of(one, "program");
    listener.pid = static_cast<pid_t>(number_of(one, "pid"));
    listener.socket = socket;
    listener.node = text_of(one, "node");
    if (listener.port != 0) listeners.push_back(listener);
  }
  return listeners;
}

std::vector<Listener> tcp_listeners(const Json& state, const std::string& socket) {
  std::vector<Listener> listeners;
  SocketTables tables;
  std::set<std::uint64_t> held;
  for (const pid_t pid : processes()) {
    for (const std::uint16_t port : ports_of(pid, tables, held)) {
      Listener listener;
      listener.port = port;
      listener.how = "TCP";
      listener.pid = pid;
      std::istringstream(read_file(fmt::format("/proc/{}/comm", pid))) >> listener.program;
      place(listener, state, socket);
      listeners.push_back(listener);
    }
  }
  for (Listener& one : listeners_of_others(sockets_seen_by("self"), held)) {
    listeners.push_back(std::move(one));
  }
  return listeners;
}

std::vector<Listener> listeners_of_others(const std::vector<ListeningSocket>& sockets,
                                          const std::set<std::uint64_t>& held) {
  std::vector<Listener> listeners;
  for (const ListeningSocket& socket : sockets) {
    if (held.contains(socket.inode)) continue;
    Listener listener;
    listener.port = socket.port;
    listener.how = "TCP";
    listener.other_user = socket.uid;
    listeners.push_back(listener);
  }
  return listeners;
}

bool is_wanted(const Listener& listener, const Wanted& wanted) {
  if (listener.port != wanted.port || listener.socket != wanted.socket) return false;
  return wanted.node.empty() || listener.node == wanted.node;
}

std::string hint_of(const std::vector<Listener>& all, const Wanted& wanted) {
  std::string elsewhere;
  std::set<std::string> told;  // one that listens in two ways is told once
  std::set<std::string> here;
  for (const Listener& one : all) {
    const bool ours = one.socket == wanted.socket;
    if (ours) here.insert(fmt::format("{} on {} ({})", one.port, one.node, one.program));
    if (one.port != wanted.port) continue;
    std::string line = fmt::format("{} listens on it, but ", name_of(one));
    if (one.other_user) {
      line = name_of(one) + " listens on it; the TCP ports are the machine's: choose another one";
    } else if (one.socket.empty()) {
      line += "does not run under `softib run`";
    } else if (ours) {
      line += "on " + one.node;
    } else {
      line += fmt::format("on fabric \"{}\"", fabric_of(one.socket));
    }
    if (!told.insert(line).second) continue;
    elsewhere += "\n  " + wrap_words(line + ".", kColumns, 4, 2);
  }
  if (!elsewhere.empty()) return elsewhere;
  if (here.empty()) return "\n  No program of this fabric listens on any port.";
  const std::string line =
      fmt::format("Programs of this fabric listen on {}.", fmt::join(here, ", "));
  return "\n  " + wrap_words(line, kColumns, 4, 2);
}

}  // namespace ib::softib
