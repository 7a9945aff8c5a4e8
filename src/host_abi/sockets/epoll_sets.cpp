// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The registry of sets and their items: who is in which set, and whether the numbers still mean
// the same files. The calls themselves are in epoll.cpp.
#include "host_abi/sockets/epoll_sets.h"

#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/sockets/rdma.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <new>

namespace ib::host_abi::sockets {
namespace {

std::mutex& sets_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}
std::vector<Handle>& sets() {
  static auto* all = new std::vector<Handle>;
  return *all;
}
constinit std::atomic<int> set_count{0};

// By descriptor, without a lock: the mark of the set, plus one, and the file of a member.
constinit std::array<std::atomic<int>, kMostDescriptors> marks{};
constinit std::array<std::atomic<std::uint64_t>, kMostDescriptors> members{};

bool in_range(int fd) {
  return fd >= 0 && fd < kMostDescriptors;
}

// The mark of a set is stored before it is counted, so that who finds the count finds the mark.
bool is_empty() {
  return set_count.load(std::memory_order_acquire) == 0;
}

// Returns whether `fd` still means the set that has been made for it.
bool is_set(int fd) {
  const int mark = marks[static_cast<std::size_t>(fd)].load() - 1;
  if (mark < 0) return false;
  const int error = errno;
  epoll_event nothing{};
  const bool has_mark = real::epoll_ctl(fd, EPOLL_CTL_MOD, mark, &nothing) == 0;
  errno = error;
  return has_mark;
}

void forget_set(int fd) {
  if (in_vfork_child()) return;
  Handle ends;  // after the lock
  const std::lock_guard guard(sets_mutex());
  const auto found =
      std::find_if(sets().begin(), sets().end(), [fd](const Handle& set) { return set->fd == fd; });
  if (found == sets().end()) return;
  marks[static_cast<std::size_t>(fd)].store(0);
  ends = std::move(*found);
  sets().erase(found);
  set_count.fetch_sub(1, std::memory_order_release);
}

void forget_member(int fd) {
  members[static_cast<std::size_t>(fd)].store(0);
  const std::lock_guard guard(sets_mutex());
  for (const Handle& set : sets()) {
    const std::lock_guard items_guard(set->mutex);
    std::erase_if(set->items, [fd](const Item& item) { return item.fd == fd; });
  }
}

}  // namespace

bool may_be_set(int fd) {
  return !is_empty() && in_range(fd) && marks[static_cast<std::size_t>(fd)].load() != 0;
}

Handle find_set(int fd) {
  if (!may_be_set(fd)) return {};
  if (!is_set(fd)) {
    forget_set(fd);
    return {};
  }
  const std::lock_guard guard(sets_mutex());
  for (const Handle& set : sets()) {
    if (set->fd == fd) return set;
  }
  return {};
}

Handle make_set(int fd) {
  if (Handle set = find_set(fd)) return set;
  auto set = std::make_shared<Epoll>();
  set->fd = fd;
  set->mark = OwnDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const int mark = set->mark.get();
  epoll_event nothing{};
  if (mark < 0 || real::epoll_ctl(fd, EPOLL_CTL_ADD, mark, &nothing) != 0) return {};
  const std::lock_guard guard(sets_mutex());
  sets().push_back(set);
  marks[static_cast<std::size_t>(fd)].store(mark + 1);
  set_count.fetch_add(1, std::memory_order_release);
  return set;
}

void note_member(int fd, std::uint64_t file) {
  members[static_cast<std::size_t>(fd)].store(file);
}

void forget_in_epolls(int fd) {
  if (is_empty() || !in_range(fd) || in_vfork_child()) return;
  const std::uint64_t file = members[static_cast<std::size_t>(fd)].load();
  if (file != 0 && still_means(fd, file)) forget_member(fd);
  if (is_set(fd)) forget_set(fd);
}

void forget_closed_sets() {
  for (int fd = 0; !is_empty() && fd < kMostDescriptors; ++fd) {
    if (marks[static_cast<std::size_t>(fd)].load() != 0) static_cast<void>(find_set(fd));
  }
}

void release_epoll_locks_of_parent() {
  if (set_count.load() == 0) return;
  new (&sets_mutex()) std::mutex;
  for (const Handle& set : sets()) new (&set->mutex) std::mutex;
}

}  // namespace ib::host_abi::sockets
