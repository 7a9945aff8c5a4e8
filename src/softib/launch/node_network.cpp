// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One request to softib-net, which is started if nobody listens; again if it was on its way out.
// Then `softib run --net` enters the namespaces that came with the answer.
#include "softib/launch/node_network.h"

#include "linux/net/namespaces.h"
#include "linux/server/server_directory.h"
#include "linux/server/server_message_io.h"
#include "setup/cli_error.h"
#include "softib/launch/launcher.h"
#include "softib/launch/spawn.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace ib::softib {
namespace {

// The driver may take ten seconds to be ready (softib_net/net_node.cpp).
constexpr int kAnswerMs = 30'000;
constexpr std::chrono::seconds kStart{20};
// One that is on its way out leaves requests without an answer.
constexpr int kTries = 20;

Fd connect_to(const std::string& path) {
  Fd socket = make_fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.valid())
    throw CliError(Exit::Resources, fmt::format("socket: {}", std::strerror(errno)));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(socket.get(), generic, sizeof address) == 0) return socket;
  if (errno == ENOENT || errno == ECONNREFUSED) return {};
  throw CliError(Exit::Permission,
                 fmt::format("cannot connect to {}: {}", path, std::strerror(errno)));
}

Exit exit_of(Status status) {
  if (status == Status::NotFound) return Exit::NotFound;
  return status == Status::DeviceBusy ? Exit::Busy : Exit::Failed;
}

// Returns nothing if it has ended without an answer.
std::optional<NetReply> receive_answer(Fd socket) {
  pollfd waiting{socket.get(), POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&waiting, 1, kAnswerMs);
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) throw CliError(Exit::Daemon, "softib-net does not answer");
  std::array<std::byte, sizeof(NetAnswer) + kMostNetText> buffer{};
  os::ServerMessage message;
  if (os::receive_message(socket.get(), buffer, message) != os::Transfer::Done) return std::nullopt;
  NetReply reply;
  reply.first = std::move(message.handles[0]);
  reply.second = std::move(message.handles[1]);
  NetAnswer head;
  if (message.bytes.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, message.bytes.data(), sizeof head);
  const std::span<const std::byte> text = message.bytes.subspan(sizeof head);
  reply.text.assign(reinterpret_cast<const char*>(text.data()), text.size());
  const auto status = static_cast<Status>(head.status);
  if (status != Status::Ok) {
    throw CliError(exit_of(status), reply.text.empty() ? status_text(status) : reply.text);
  }
  reply.connection = std::move(socket);
  return reply;
}

void start(const NetPlace& place, const Installation& installation, const FabricFiles& files) {
  require_net_program(installation);
  std::string reason;
  if (os::ServerDirectory::prepare(net_dir(place.runtime_dir), reason) != Status::Ok)
    throw CliError(Exit::Permission, reason);
  const std::vector<std::string> words{installation.net_program(), "--fabric", place.fabric,
                                       "--runtime-dir", place.runtime_dir};
  const DaemonStart outcome = start_daemon(words, files.log, kStart);
  if (outcome.ready) return;
  // The report is one line.
  std::string failure = outcome.failure;
  constexpr std::string_view kRemedy = "   Remedy: ";
  if (const std::size_t at = failure.find(kRemedy); at != std::string::npos)
    failure.replace(at, 1, "\n");
  throw CliError(outcome.explained ? Exit::Resources : Exit::Daemon,
                 fmt::format("no network for nodes here: {}", failure));
}

std::optional<NetReply> try_once(const FabricFiles& files, const ParsedNetRequest& request,
                                 const std::array<Fd, 2>& sent) {
  Fd socket = connect_to(files.socket);
  if (!socket.valid()) return std::nullopt;
  const auto message = write_net_request(request);
  if (os::send_message(socket.get(), message, sent) != os::Transfer::Done) return std::nullopt;
  return receive_answer(std::move(socket));
}

}  // namespace

std::optional<NetReply> request_running_network(const NetPlace& place,
                                                const ParsedNetRequest& request) {
  return try_once(net_files(place.runtime_dir, place.fabric), request, {});
}

NetReply request_network(const NetPlace& place, const Installation& installation,
                         const ParsedNetRequest& request, Fd file) {
  const std::array<Fd, 2> sent{std::move(file), Fd{}};
  const FabricFiles files = net_files(place.runtime_dir, place.fabric);
  for (int i = 0; i < kTries; ++i) {
    if (auto reply = try_once(files, request, sent)) return *std::move(reply);
    const Fd turn = take_turn(place.runtime_dir);
    if (!connect_to(files.socket).valid()) start(place, installation, files);
  }
  throw CliError(Exit::Daemon, fmt::format("softib-net ends again and again; see {}", files.log));
}

void enter_network(const NetReply& reply) {
  const auto check = [](const os::net::Refusal& refusal) {
    if (refusal) throw CliError(Exit::Permission, os::net::explain(refusal));
  };
  if (!reply.first.valid() || !reply.second.valid())
    throw CliError(Exit::Resources, "no descriptor is left for the network (ulimit -n)");
  check(os::net::join_user_namespace(reply.first.get()));
  check(os::net::join_network_namespace(reply.second.get()));
  // Without it programs find the interfaces by all calls but not in /sys.
  (void)os::net::show_own_interfaces();
  // Of root all programs have them anyway.
  if (::geteuid() == 0) return;
  check(os::net::keep_capabilities());
  (void)os::net::ignore_rights_of_files();
}

}  // namespace ib::softib
