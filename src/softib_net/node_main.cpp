// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The way from a fork of softib-net to a driver that runs in the namespace of its node.
#include "softib_net/node_main.h"

#include "linux/net/namespaces.h"
#include "linux/process/client_handle.h"
#include "linux/server/server_message_io.h"
#include "platform/level.h"
#include "softib_net/host_network.h"
#include "softib_net/node_messages.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>

namespace ib::softib_net {
namespace {

using os::net::Refusal;

constexpr int kChannel = 3;
constexpr int kNamespace = 4;

void take_default_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// The listener, the lock and the connections of programs stay with softib-net alone: a copy here
// would keep them open behind its back. Returns false if there are too few descriptors.
bool keep_only(platform::NativeHandle& channel, platform::NativeHandle& network_namespace) {
  // First to numbers above, since 3 and 4 may be either of them.
  const int high_channel = ::fcntl(channel.get(), F_DUPFD_CLOEXEC, 10);
  const bool has_namespace = network_namespace.valid();
  const int high_namespace =
      has_namespace ? ::fcntl(network_namespace.get(), F_DUPFD_CLOEXEC, 10) : -1;
  if (high_channel < 0 || (has_namespace && high_namespace < 0)) return false;
  (void)channel.release();
  (void)network_namespace.release();
  ::dup3(high_channel, kChannel, O_CLOEXEC);
  channel = os::own_descriptor(kChannel);
  if (has_namespace) {
    ::dup3(high_namespace, kNamespace, O_CLOEXEC);
    network_namespace = os::own_descriptor(kNamespace);
  }
  ::close_range(has_namespace ? kNamespace + 1 : kNamespace, ~0u, 0);
  return true;
}

void say(int channel, Say what, std::string_view text = {}, platform::NativeHandle file = {}) {
  std::array<platform::NativeHandle, 2> handles;
  handles[0] = std::move(file);
  (void)os::send_message(channel, node_message(what, text), handles);
}

Refusal take_place(const platform::NativeHandle& network_namespace) {
  return network_namespace.valid() ? os::net::join_network_namespace(network_namespace.get())
                                   : os::net::enter_new_network_namespace();
}

}  // namespace

void node_main(NodeStart start, platform::NativeHandle channel, const MakeDriver& make_driver) {
  // A process of its own, forked inside of a callback of the event loop: it may block.
  level_internal::current = Level::Passive;
  take_default_signals();
  if (!keep_only(channel, start.network_namespace)) ::_exit(1);
  const std::string name = "softib-" + start.place.node;
  ::prctl(PR_SET_NAME, name.c_str());
  if (const Refusal refusal = take_place(start.network_namespace)) {
    say(channel.get(), Say::Failed, os::net::explain(refusal));
    ::_exit(1);
  }
  say(channel.get(), Say::Namespace, {}, os::net::own_network_namespace());
  const int to = ::fcntl(channel.get(), F_DUPFD_CLOEXEC, 0);  // outlives the network
  std::string reason;
  auto network = HostNetwork::create(std::move(start), std::move(channel), reason);
  Status status = network ? Status::Ok : network.error();
  if (network) {
    const std::unique_ptr<os::net::NodeDriver> driver = make_driver((*network)->place());
    status = driver->run(**network, reason);
  }
  if (status != Status::Ok) say(to, Say::Failed, reason.empty() ? status_text(status) : reason);
  ::_exit(status == Status::Ok ? 0 : 1);
}

}  // namespace ib::softib_net
