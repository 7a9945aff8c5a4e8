// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/daemon_clients.h"

#include "hca/layout/layout.h"

#include <utility>

namespace ib::softib {
namespace {

// One for each process that has a slot, and as many for those that only send queries.
constexpr std::size_t kMaxSessions = std::size_t{2} * hca::kMaxSlots;

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

std::vector<std::uint32_t> DaemonClients::pids() const {
  std::vector<std::uint32_t> pids;
  for (const auto& [id, session] : sessions_) {
    if (!session->client_has_gone()) pids.push_back(session->client().pid);
  }
  return pids;
}

}  // namespace ib::softib
