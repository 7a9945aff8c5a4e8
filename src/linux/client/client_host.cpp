// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/client/client_host.h"

#include "linux/adopt/adopt.h"
#include "linux/adopt/pin_sources.h"
#include "linux/barriers.h"
#include "linux/client/client_channel.h"
#include "linux/client/client_memory.h"
#include "linux/client/client_requests.h"
#include "linux/client/nameplate.h"
#include "linux/process/client_relax.h"
#include "linux/process/client_wait.h"
#include "linux/process/kept_descriptor.h"
#include "linux/process/process_number.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace ib::os {

Instant LinuxClientHost::now() {
  return monotonic_now();
}

std::uint32_t LinuxClientHost::pid() {
  return static_cast<std::uint32_t>(::getpid());
}

std::uint64_t LinuxClientHost::process_number() {
  return os::process_number();
}

std::uint64_t LinuxClientHost::page_size() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

Result<std::unique_ptr<platform::ControlChannel>> LinuxClientHost::connect(std::string& reason) {
  return connect_channel(setting(kSocketVariable), reason);
}

Result<std::unique_ptr<platform::RequestChannel>> LinuxClientHost::connect_for_requests(
    std::string& reason) {
  return os::connect_for_requests(setting(kSocketVariable), reason);
}

Result<std::unique_ptr<platform::MappedFile>> LinuxClientHost::map(
    const platform::NativeHandle& file, std::uint64_t space, std::string& reason) {
  return map_file(file, space, reason);
}

platform::Nameplate LinuxClientHost::nameplate() {
  return os::nameplate();
}

Status LinuxClientHost::read_process(const platform::ProcessName& who, std::uint64_t from, void* to,
                                     std::size_t length) {
  return read_process_memory(who, from, to, length);
}

Status LinuxClientHost::write_process(const platform::ProcessName& who, std::uint64_t to,
                                      const void* from, std::size_t length) {
  return write_process_memory(who, to, from, length);
}

platform::OwnCopy LinuxClientHost::copy_own(void* to, const void* from, std::size_t length) {
  return copy_own_memory(to, from, length);
}

bool LinuxClientHost::is_accessible(const void* at, std::size_t length, bool write) {
  return is_own_memory_accessible(at, length, write);
}

Result<platform::AdoptedPages> LinuxClientHost::adopt(std::uint64_t address, std::uint64_t length,
                                                      std::uint64_t most) {
  return adopt_pages(address, length, most);
}

bool LinuxClientHost::give_back(const platform::AdoptedPages& pages) {
  // Pages that the program has unmapped need no work.
  const Presence left = os::adopted_presence(pages, pages.address, pages.length);
  if (left != Presence::Gone && may_pin_pages()) return false;
  give_back_pages(pages);
  return true;
}

platform::ClientHost::Presence LinuxClientHost::adopted_presence(
    const platform::AdoptedPages& pages, std::uint64_t address, std::uint64_t length) {
  return os::adopted_presence(pages, address, length);
}

void LinuxClientHost::wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                           Duration timeout) {
  futex_wait(word, expected, timeout);
}

void LinuxClientHost::wake(std::atomic<std::uint32_t>& word) {
  futex_wake(word);
}

void LinuxClientHost::relax(std::uint32_t round) {
  relax_thread(round);
}

Status LinuxClientHost::make_pipe(platform::NativeHandle& read_end,
                                  platform::NativeHandle& write_end) {
  return make_pipe_pair(read_end, write_end);
}

platform::NativeHandle LinuxClientHost::keep(platform::NativeHandle handle) {
  return keep_descriptor(std::move(handle));
}

Status LinuxClientHost::write_pipe(int write_end, std::span<const std::byte> bytes) {
  if (is_replaced(write_end)) return Status::NotFound;
  return write_to_pipe(write_end, bytes);
}

bool LinuxClientHost::holds_bytes(int pipe_end) {
  return !is_replaced(pipe_end) && pipe_holds_bytes(pipe_end);
}

Result<std::unique_ptr<platform::ClientHost::Thread>> LinuxClientHost::start_thread(
    const char* name, std::function<void()> body) {
  return start_background_thread(name, std::move(body));
}

std::string LinuxClientHost::setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

platform::Barriers& LinuxClientHost::barriers() {
  return os::barriers();
}

LinuxClientHost& client_host() {
  // Leaked on purpose: see the head of client_host.h.
  static auto& host = *new LinuxClientHost;
  return host;
}

}  // namespace ib::os
