// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The one client of this process at softibd: attached at the first need, dropped in a child of
// fork(), replaced once it finds softibd gone. All requests about streams go through here.
#include "host_abi/streams/fabric.h"

#include "host_abi/sockets/common/own_process.h"
#include "host_abi/sockets/common/ranges.h"
#include "host_abi/sockets/common/stdio_streams.h"
#include "host_abi/streams/connections.h"
#include "host_abi/streams/epoll_records.h"
#include "host_abi/streams/handlers.h"
#include "host_abi/streams/inherited.h"
#include "host_abi/streams/inside.h"
#include "host_abi/streams/left_rung.h"
#include "linux/client/client_host.h"

#include <netinet/in.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <utility>

namespace ib::host_abi::stream_switch {
namespace {

using user::StreamClient;

constinit sockets::Ranges ranges;
constinit bool on = false;
constinit pthread_mutex_t attaching = PTHREAD_MUTEX_INITIALIZER;
// Never destroyed: threads may use it, and ends refer to its device memory.
constinit std::atomic<StreamClient*> client{nullptr};
constinit std::atomic<std::int64_t> next_attempt_ns{0};
constexpr std::int64_t kBetweenAttempts = 1'000'000'000;
constinit std::atomic<std::uint32_t> children{0};

// A call to softibd by this thread.
class Call {
 public:
  Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  Inside inside_{Inside::Signals::AreBlocked};
  sockets::WithoutCancel no_cancel_;
};

// Under the lock.
StreamClient* attach() {
  platform::ClientHost& host = os::client_host();
  const std::int64_t now = host.now().time_since_epoch().count();
  if (now < next_attempt_ns.load()) return nullptr;
  sockets::restore_variables();
  auto attached =
      StreamClient::attach(host, host.setting("SOFTIB_NODE"), program_invocation_short_name);
  if (!attached) {
    next_attempt_ns.store(now + kBetweenAttempts);
    return nullptr;
  }
  StreamClient* const made = (*std::move(attached)).release();
  client.store(made, std::memory_order_release);
  return made;
}

StreamClient* attached() {
  StreamClient* one = client.load(std::memory_order_acquire);
  if (one != nullptr) return one;
  ::pthread_mutex_lock(&attaching);
  one = client.load();
  if (one == nullptr) one = attach();
  ::pthread_mutex_unlock(&attaching);
  return one;
}

Status status_of(const Status& status) {
  return status;
}
template <class T>
Status status_of(const Result<T>& result) {
  return result ? Status::Ok : result.error();
}

// Calls `function` with the client. A second time with a new one: the fabric may have been started
// again since the first.
template <class Function>
auto with_client(Function function) -> decltype(function(std::declval<StreamClient&>())) {
  const Call call;
  for (int attempt = 0;; ++attempt) {
    StreamClient* one = attached();
    if (one == nullptr) return Status::Disconnected;
    auto result = function(*one);
    if (status_of(result) != Status::Disconnected || attempt > 0) return result;
    client.compare_exchange_strong(one, nullptr);
  }
}

[[gnu::constructor]] void read_settings() {
  const char* text = ::secure_getenv("SOFTIB_SOCKETS");
  on = text != nullptr && ranges.parse(text);
  static constinit bool said = false;
  if (text != nullptr && !on) {
    sockets::say_once(
        said, "softib: SOFTIB_SOCKETS is not a list of addresses; all connections use TCP\n");
  }
  if (!on) return;
  begin_to_replace_handlers();
  take_inherited();
}

void before_fork() {
  if (is_any_late()) settle_all_left();  // the child has the same sets
  lock_table();
  lock_epoll_records();
}

void after_fork_in_parent() {
  unlock_epoll_records();
  unlock_table();
  children.fetch_add(1, std::memory_order_relaxed);
}

[[gnu::constructor]] void watch_forks() {
  ::pthread_atfork(before_fork, after_fork_in_parent, nullptr);
}

}  // namespace

std::uint32_t forks() {
  return children.load(std::memory_order_relaxed);
}

bool is_on() {
  return on;
}

bool is_in_range(const verbs::control::StreamAddress& address) {
  return on && ranges.contains(address.address);
}

void attach_in_time() {
  if (!on || Inside::is() || sockets::in_vfork_child()) return;
  tell_of_listeners();
  static_cast<void>(with_client(
      [](const StreamClient& one) { return one.is_mine() ? Status::Ok : Status::Disconnected; }));
}

bool listen_at(const verbs::control::StreamAddress& local) {
  return with_client([&](StreamClient& one) { return one.listen(local); }) == Status::Ok;
}

void unlisten_at(const verbs::control::StreamAddress& local) {
  if (client.load() == nullptr) return;
  static_cast<void>(with_client([&](StreamClient& one) { return one.unlisten(local); }));
}

Result<StreamClient::Opened> connect_to(const verbs::control::StreamAddress& remote, int tcp) {
  return with_client([&](StreamClient& one) { return one.connect(remote, tcp); });
}

Result<StreamClient::Opened> accept_from(const verbs::control::StreamAddress& local,
                                         const verbs::control::StreamAddress& remote) {
  return with_client([&](StreamClient& one) { return one.accept(local, remote); });
}

streams::End* opened_end_of(Socket& stream) {
  if (stream.generation.load(std::memory_order_acquire) != sockets::generation()) return nullptr;
  return stream.end.load(std::memory_order_acquire);
}

streams::End* end_of(Socket& stream) {
  if (streams::End* const end = opened_end_of(stream)) return end;
  auto opened =
      with_client([&](StreamClient& one) { return one.open(stream.stream, stream.end_number); });
  if (!opened) return nullptr;
  const Call call;
  ::pthread_mutex_lock(&attaching);
  streams::End* end = opened_end_of(stream);
  if (end == nullptr) {
    end = (*opened).release();  // that of the parent has no memory here
    stream.end.store(end, std::memory_order_release);
    stream.generation.store(sockets::generation(), std::memory_order_release);
    stream.is_inherited.store(true);
    stream.family = end->shared().family == AF_INET6 ? AF_INET6 : AF_INET;
    stream.has_urgent_inline.store(end->option(SOL_SOCKET, SO_OOBINLINE).value_or(0) != 0);
  }
  ::pthread_mutex_unlock(&attaching);
  return end;
}

void grow(streams::End& end) {
  const Status status = with_client([&](StreamClient& one) { return one.grow(end); });
  if (status == Status::Ok) return;
  const Call call;
  end.use_ring(std::nullopt);
}

}  // namespace ib::host_abi::stream_switch

namespace ib::host_abi::sockets {

void begin_as_child() {
  using namespace stream_switch;
  attaching = PTHREAD_MUTEX_INITIALIZER;
  client.store(nullptr, std::memory_order_relaxed);  // the parent's
  next_attempt_ns.store(0, std::memory_order_relaxed);
  begin_table_as_child();
  begin_listeners_as_child();
  begin_epoll_records_as_child();
  release_lock_of_streams();
}

}  // namespace ib::host_abi::sockets
