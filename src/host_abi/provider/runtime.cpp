// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/provider/runtime.h"

#include "host_abi/provider/errors.h"
#include "linux/client/client_host.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace ib::host_abi {

namespace {

std::atomic<Runtime*> g_runtime{nullptr};
std::atomic<unsigned> g_fork_epoch{1};

// The child must neither touch the parent's runtime nor wait for a lock that some thread of the
// parent held at the moment of the fork.
void in_forked_child() {  // relaxed: it has one thread, which makes all others
  g_fork_epoch.fetch_add(1, std::memory_order_relaxed);
  g_runtime.store(nullptr, std::memory_order_release);
}

// Returns whether both descriptors name one open file. A duplicate of a uverbs descriptor stands
// for the same context; two opens of the device do not.
bool same_open_file(int a, int b) {
  constexpr long kKcmpFile = 0;
  const long pid = ::getpid();
  return ::syscall(SYS_kcmp, pid, pid, kKcmpFile, static_cast<long>(a), static_cast<long>(b)) == 0;
}

// The GUID as softibd's sysfs shows it: "0253:4600:0000:0000". The list from the attach lacks HCAs
// that came later.
Result<std::uint64_t> node_guid(const ibv_device& device) {
  const std::string path = std::string(device.ibdev_path) + "/node_guid";
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return status_of(errno);
  std::array<char, 32> text{};
  const ssize_t n = ::read(fd, text.data(), text.size() - 1);
  ::close(fd);
  std::string digits(text.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  std::erase(digits, ':');
  return std::strtoull(digits.c_str(), nullptr, 16);
}

}  // namespace

unsigned fork_epoch() {
  return g_fork_epoch.load(std::memory_order_relaxed);
}

user::Process* Runtime::attached() {
  const Runtime* runtime = g_runtime.load(std::memory_order_acquire);
  return runtime != nullptr ? runtime->process_.load(std::memory_order_acquire) : nullptr;
}

Runtime& Runtime::instance() {
  Runtime* runtime = g_runtime.load(std::memory_order_acquire);
  if (runtime != nullptr) return *runtime;
  static const int registered = ::pthread_atfork(nullptr, nullptr, in_forked_child);
  static_cast<void>(registered);
  auto fresh = std::make_unique<Runtime>();
  if (g_runtime.compare_exchange_strong(runtime, fresh.get(), std::memory_order_acq_rel)) {
    return *fresh.release();
  }
  return *runtime;
}

Result<user::Process*> Runtime::process() {
  user::Process* process = process_.load(std::memory_order_acquire);
  if (process != nullptr) return process;
  return attach();
}

Result<user::Process*> Runtime::attach() {
  user::ProcessOptions options;
  options.node = os::client_host().setting("SOFTIB_NODE");
  options.program = program_invocation_short_name;
  std::string reason;
  auto attached = user::Process::attach(os::client_host(), options, events_, reason);
  if (!attached) {
    static_cast<void>(fail("ibv_open_device", errno_of(attached.error()), reason.c_str()));
    return attached.error();
  }
  user::Process* process = (*std::move(attached)).release();
  process_.store(process, std::memory_order_release);
  return process;
}

Result<std::shared_ptr<DeviceFile>> Runtime::open(const ibv_device& device, int fd) {
  const std::lock_guard lock(mutex_);
  auto file = std::make_shared<DeviceFile>();
  const Status opened = file->async.open();
  if (opened != Status::Ok) return opened;
  // A second try with a new connection: the fabric may have been restarted since the first one.
  for (int attempt = 0;; ++attempt) {
    IB_TRY(process, process());
    IB_TRY(guid, node_guid(device));
    auto hca = process->open_hca(guid);
    if (hca) {
      file->hca = *std::move(hca);
      break;
    }
    const bool lost = hca.error() == Status::Disconnected || hca.error() == Status::DeviceRemoved;
    if (!lost || attempt > 0) return hca.error();
    process_.store(nullptr, std::memory_order_release);  // not deleted: its threads still run
  }
  file->name = device.name;
  file->command_fds.push_back(fd);
  events_.add_file(file->hca->file(), &file->async);
  files_.push_back(file);
  return file;
}

Result<std::shared_ptr<DeviceFile>> Runtime::share(const std::string& name, int fd) {
  const std::lock_guard lock(mutex_);
  for (const auto& file : files_) {
    if (file->name != name) continue;
    const std::lock_guard file_lock(file->mutex);
    const bool ours = std::any_of(file->command_fds.begin(), file->command_fds.end(),
                                  [&](int one) { return same_open_file(one, fd); });
    if (!ours) continue;
    file->command_fds.push_back(fd);
    return file;
  }
  return Status::NotSupported;
}

void Runtime::forget(const std::shared_ptr<DeviceFile>& file, int fd) {
  const std::lock_guard lock(mutex_);
  {
    const std::lock_guard file_lock(file->mutex);
    std::erase(file->command_fds, fd);
    if (!file->command_fds.empty()) return;
  }
  events_.remove_file(&file->async);
  std::erase(files_, file);
}

Result<int> Runtime::create_channel() {
  const std::lock_guard lock(mutex_);
  IB_TRY(process, process());
  IB_TRY(channel, process->create_channel());
  const int fd = channel->release_fd();
  channels_[fd] = std::move(channel);
  return fd;
}

Result<std::uint32_t> Runtime::channel_handle(int fd) {
  const std::lock_guard lock(mutex_);
  const auto found = channels_.find(fd);
  if (found == channels_.end()) return Status::InvalidParameter;
  return found->second->handle();
}

void Runtime::channel_closed(int fd) {
  std::unique_ptr<user::CompletionChannel> channel;
  {
    const std::lock_guard lock(mutex_);
    const auto found = channels_.find(fd);
    if (found == channels_.end()) return;  // a dup of one, or of another process
    channel = std::move(found->second);
    channels_.erase(found);
  }
  // DeviceBusy if completion queues still use it: softibd then keeps it until the process ends.
  static_cast<void>(channel->destroy());
}

// Not in a child: the connection to softibd is its parent's.
void Runtime::channel_read() {
  user::Process* const process = attached();
  if (process == nullptr || !process->poster().late_events().any()) return;
  if (!process->connection().is_mine()) return;
  if (!process->poster().late_events().move()) process->service().wake();
}

void* Runtime::deliver_completion(std::uint64_t cq_index) {
  user::Process* process = process_.load(std::memory_order_acquire);
  if (process == nullptr) return nullptr;
  const auto cookie = process->objects().cq_cookie(cq_index);
  return cookie ? events_.deliver_completion(*cookie) : nullptr;
}

}  // namespace ib::host_abi
