// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Forking the process of a node, its messages, and how it ended.
#include "softib_net/node_process.h"

#include "linux/process/client_handle.h"
#include "softib_net/node_messages.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

namespace ib::softib_net {
namespace {

constexpr std::chrono::seconds kTimeToStop{3};

}  // namespace

Result<std::unique_ptr<NodeProcess>> NodeProcess::start(os::EventLoop& loop, NodeStart start,
                                                        const MakeDriver& make_driver,
                                                        Owner& owner) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return Status::InsufficientResources;
  platform::NativeHandle ours = os::own_descriptor(ends[0]);
  platform::NativeHandle theirs = os::own_descriptor(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return Status::InsufficientResources;
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);  // it had ended before
    node_main(std::move(start), std::move(theirs), make_driver);
  }
  return std::unique_ptr<NodeProcess>(new NodeProcess(loop, std::move(ours), pid, owner));
}

NodeProcess::NodeProcess(os::EventLoop& loop, platform::NativeHandle channel, pid_t pid,
                         Owner& owner)
    : loop_(loop),
      owner_(owner),
      pid_(pid),
      channel_(std::make_unique<os::ServerConnection>(
          loop, std::move(channel),
          std::make_shared<std::vector<std::byte>>(sizeof(Say) + kMostNodeText))) {
  channel_->start(*this);
}

NodeProcess::~NodeProcess() {
  if (pid_ > 0) (void)reap();
}

void NodeProcess::request_report() {
  channel_->send(node_message(Say::WantReport));
}

void NodeProcess::stop() {
  if (is_stopping()) return;
  channel_->send(node_message(Say::Stop));
  deadline_ = loop_.at(loop_.now() + kTimeToStop, [this] { ::kill(pid_, SIGKILL); });
}

void NodeProcess::on_message(os::ServerMessage message) {
  const auto said = parse_node_message(message.bytes);
  if (!said) return;
  switch (said->say) {
    case Say::Namespace:
      if (message.handles[0].valid()) owner_.on_namespace(std::move(message.handles[0]));
      return;
    case Say::Ready: return owner_.on_ready();
    case Say::Report: return owner_.on_report(std::move(message.handles[0]));
    case Say::Log: return owner_.on_log(said->text);
    case Say::Failed: failure_ = said->text; return;
    case Say::Stop:
    case Say::WantReport: return;  // it says no such thing
  }
}

// The end of the channel is that of the process: nobody else has the other end.
void NodeProcess::on_closed() {
  const bool in_order = is_stopping();
  std::string reason = reap();
  if (in_order) reason.clear();
  owner_.on_end(reason);
}

std::string NodeProcess::reap() {
  // No effect on one that is on its way out; it must not hold up softib-net.
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) break;
  }
  pid_ = 0;
  if (!failure_.empty()) return failure_;
  if (WIFSIGNALED(status)) {
    return fmt::format("its driver was killed by signal {} ({})", WTERMSIG(status),
                       ::strsignal(WTERMSIG(status)));
  }
  return fmt::format("its driver ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace ib::softib_net
