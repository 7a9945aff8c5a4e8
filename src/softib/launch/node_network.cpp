// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/launch/node_network.h"

#include "linux/net/namespaces.h"
#include "linux/received_descriptors.h"
#include "linux/server/server_directory.h"
#include "setup/cli_error.h"
#include "softib/launch/launcher.h"
#include "softib/launch/spawn.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
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

bool send_request(int socket, const std::vector<std::byte>& bytes, const Fd& file) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> extra{};
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (file.valid()) {
    message.msg_control = extra.data();
    message.msg_controllen = extra.size();
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    const int descriptor = file.get();
    std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
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
  std::array<char, sizeof(NetAnswer) + kMostNetText> buffer{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> extra{};
  iovec part{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = extra.data();
  message.msg_controllen = extra.size();
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  NetReply reply;
  os::take_descriptors(message, [&reply](int descriptor) {
    Fd& place = reply.first.valid() ? reply.second : reply.first;
    place = make_fd(descriptor);
  });
  NetAnswer head;
  if (got < static_cast<ssize_t>(sizeof head)) return std::nullopt;
  std::memcpy(&head, buffer.data(), sizeof head);
  reply.text.assign(buffer.data() + sizeof head, static_cast<std::size_t>(got) - sizeof head);
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
                                 const Fd& file) {
  Fd socket = connect_to(files.socket);
  if (!socket.valid()) return std::nullopt;
  if (!send_request(socket.get(), write_net_request(request), file)) return std::nullopt;
  return receive_answer(std::move(socket));
}

}  // namespace

std::optional<NetReply> request_running_network(const NetPlace& place,
                                                const ParsedNetRequest& request) {
  return try_once(net_files(place.runtime_dir, place.fabric), request, {});
}

NetReply request_network(const NetPlace& place, const Installation& installation,
                         const ParsedNetRequest& request, const Fd& file) {
  const FabricFiles files = net_files(place.runtime_dir, place.fabric);
  for (int i = 0; i < kTries; ++i) {
    if (auto reply = try_once(files, request, file)) return *std::move(reply);
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
  // Of root all programs have them anyway.
  if (::geteuid() == 0) return;
  check(os::net::keep_capabilities());
  (void)os::net::ignore_rights_of_files();
}

}  // namespace ib::softib
