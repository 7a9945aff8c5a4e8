// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/daemon_clients.h"

#include "hca/layout/layout.h"
#include "setup/fd.h"

#include <fmt/format.h>

#include <utility>

namespace ib::softib {
namespace {

// One for each process that has a slot, and as many for those that only send queries.
constexpr std::size_t kMaxSessions = std::size_t{2} * hca::kMaxSlots;
// The command of softib; also `softib run` until it becomes the program.
constexpr const char* kTool = "softib";

// Returns the name of a process; empty if it has ended, even if its parent has not waited for it.
std::string name_of_living(std::uint32_t pid) {
  const std::string stat = read_file(fmt::format("/proc/{}/stat", pid), 4096);  // "12 (name) S ..."
  const std::size_t begin = stat.find('(');
  const std::size_t end = stat.rfind(") ");
  if (begin == std::string::npos || end == std::string::npos || end + 2 >= stat.size()) return {};
  const char state = stat[end + 2];
  return state == 'Z' || state == 'X' ? std::string() : stat.substr(begin + 1, end - begin - 1);
}

}  // namespace

void DaemonClients::listen(os::NativeHandle listener) {
  os::ServerSocket::Options server;
  server.max_message = verbs::control::kMaxMessage;
  server.refusal = make_error_reply(0, Status::AccessDenied,
                                    "this softibd serves another user; start one of your own with "
                                    "`softib run`");
  server.has_room = [this] { return sessions_.size() < kMaxSessions; };
  server.on_client = [this](std::unique_ptr<os::ServerConnection> connection, os::PeerProcess) {
    add(std::move(connection));
  };
  server.on_problem = [this](const char* what) { log_.warn(what); };
  server_ = std::make_unique<os::ServerSocket>(loop_, std::move(listener), std::move(server));
}

void DaemonClients::add(std::unique_ptr<os::ServerConnection> connection) {
  const std::uint64_t id = ++last_session_;
  auto session = std::make_unique<DaemonSession>(host_, std::move(connection), id);
  DaemonSession& started = *sessions_.emplace(id, std::move(session)).first->second;
  started.start();
  on_change_();
}

void DaemonClients::remove(std::uint64_t session) {
  sessions_.erase(session);
  on_change_();
}

void DaemonClients::end_sessions() {
  for (const auto& [id, session] : sessions_) session->end();
}

void DaemonClients::end_services(std::uint64_t process) {
  for (const auto& [id, session] : sessions_) {
    if (session->serves() == process) session->end();
  }
}

std::map<std::uint32_t, DaemonClients::Program> DaemonClients::programs() const {
  std::map<std::uint32_t, Program> programs;
  for (const auto& [id, session] : sessions_) {
    if (session->client_has_gone()) continue;
    Program& program = programs[session->client().pid];
    if (program.node.empty()) program.node = session->node();
  }
  for (auto& [pid, program] : programs) program.name = name_of_living(pid);
  // One that has ended: a child of it has the connection.
  std::erase_if(programs, [](const auto& entry) {
    return entry.second.name.empty() || entry.second.name == kTool;
  });
  return programs;
}

std::vector<std::uint32_t> DaemonClients::pids() const {
  std::vector<std::uint32_t> pids;
  for (const auto& [id, session] : sessions_) {
    if (!session->client_has_gone()) pids.push_back(session->client().pid);
  }
  return pids;
}

}  // namespace ib::softib
