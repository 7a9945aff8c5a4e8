// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A stand-in for softibd, and a descriptor of /dev/infiniband/rdma_cm that is open there.
#pragma once

#include "host_abi/preload/device_kinds.h"
#include "host_abi/preload/fd_table.h"
#include "host_abi/preload/remote.h"
#include "linux/mailbox.h"
#include "verbs/control.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ib::host_abi::preload {

using verbs::control::Code;
using verbs::control::RdmaCmIn;
using verbs::control::RdmaCmOut;
using verbs::control::ReplyHeader;
using verbs::control::RequestHeader;

constexpr std::uint32_t kFile = 7;
constexpr char kEvent[] = "an event";

struct GetEvent {
  std::uint32_t code = 12;
  std::uint16_t in = 8;
  std::uint16_t out = sizeof kEvent;
  char* response = nullptr;
};

// Serves one open device, from its own thread, until the last descriptor of it is closed.
// classes: allow(members) a fixture: connections, and what tests have it answer
class StandIn {
 public:
  StandIn() {
    char folder[] = "/tmp/softib-stand-in-XXXXXX";
    folder_ = ::mkdtemp(folder);
    const std::string socket = folder_ + "/socket";
    listener_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, socket.c_str());
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    std::string variable = "SOFTIB_SOCKET=" + socket;
    char* entries[] = {variable.data(), nullptr};
    remote::read_environment(entries);
    thread_ = std::thread([this] { serve(); });
  }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;
  ~StandIn() {
    if (thread_.joinable()) thread_.join();
    for (const int each : connections_) ::close(each);
    for (const auto& [connection, page] : mailboxes_) ::munmap(page, os::MailboxPage::kBytes);
    ::close(listener_);
    std::filesystem::remove_all(folder_);
  }

  // Returns false if the device was still open after a time that is long enough for anything.
  bool device_has_ended() {
    thread_.join();
    return ended_;
  }
  // As a softibd that was started again.
  void drop_command_connections() {
    const std::lock_guard lock(mutex_);
    for (const auto& [connection, page] : mailboxes_) ::shutdown(connection, SHUT_RDWR);
  }
  // The number of connections that were ever made, with that of the device.
  int connections() const { return made_; }
  // The number of commands that came through mailboxes.
  int in_mailbox() const { return in_mailbox_; }
  // This follows the answers in mailboxes from now on; with an offer, if the number is not 0.
  void send_ahead(std::vector<std::uint8_t> bytes, std::uint32_t offer = 0) {
    const std::lock_guard lock(mutex_);
    ahead_ = std::move(bytes);
    offer_ = offer;
  }
  // Returns the number of what was offered and not taken; 0: none.
  std::uint32_t withdraw() {
    const std::lock_guard lock(mutex_);
    std::uint32_t offer = 0;
    for (const auto& [connection, page] : mailboxes_) offer |= page->offered.exchange(0);
    return offer;
  }
  void tell_of_events() { reply(device_, 0, 0, nullptr, 0); }
  // The same by a message with these bytes and an offer.
  void tell_of_event(const std::vector<std::uint8_t>& bytes, std::uint32_t offer) {
    const std::lock_guard lock(mutex_);
    for (const auto& [connection, page] : mailboxes_) page->offered = offer;
    reply(device_, 0, 0, bytes.data(), bytes.size());
  }
  // From the next command in a mailbox on it looks at mailboxes all the time, and says so in them.
  void stay_awake() { stays_awake_ = true; }
  // From now on each command is answered with what this returns, called in the stand-in's thread.
  void answer_with(std::function<RdmaCmOut(const RdmaCmIn&)> on_command) {
    const std::lock_guard lock(mutex_);
    on_command_ = std::move(on_command);
  }

 private:
  static constexpr int kLongMs = 20'000;

  static void reply(int to, std::uint64_t tag, std::uint64_t information, const void* data,
                    std::size_t size) {
    std::vector<char> message(sizeof(ReplyHeader) + size);
    ReplyHeader header;
    header.length = static_cast<std::uint32_t>(message.size());
    header.tag = tag;
    header.information = information;
    std::memcpy(message.data(), &header, sizeof header);
    if (size > 0) std::memcpy(message.data() + sizeof header, data, size);
    EXPECT_EQ(::send(to, message.data(), message.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(message.size()));
  }

  void serve() {
    while (!ended_) {
      std::vector<pollfd> all{{listener_, POLLIN, 0}};
      for (const int each : connections_) all.push_back({each, POLLIN, 0});
      const int ready = ::poll(all.data(), all.size(), is_awake_ ? 0 : kLongMs);
      if (ready < 0 || (ready == 0 && !is_awake_)) return;
      if (is_awake_) look_at_mailboxes();
      if (all[0].revents != 0) {
        connections_.push_back(::accept(listener_, nullptr, nullptr));
        ++made_;
      }
      for (std::size_t i = 1; i < all.size(); ++i) {
        if (all[i].revents != 0) read_from(all[i].fd);
      }
    }
  }

  void look_at_mailboxes() {
    std::vector<int> asked;
    for (const auto& [connection, page] : mailboxes_) {
      if (page->asked != page->answered) asked.push_back(connection);
    }
    for (const int each : asked) answer_in_mailbox(each);
    if (asked.empty()) std::this_thread::yield();
  }

  void read_from(int connection) {
    struct {
      RequestHeader header;
      RdmaCmIn in;
    } message{};
    const ssize_t got = ::recv(connection, &message, sizeof message, 0);
    if (got <= 0) {
      if (connection == device_) ended_ = true;
      std::erase(connections_, connection);
      ::close(connection);
      const std::lock_guard lock(mutex_);
      if (const auto mailbox = mailboxes_.extract(connection)) {
        ::munmap(mailbox.mapped(), os::MailboxPage::kBytes);
      }
    } else if (message.header.code == static_cast<std::uint32_t>(Code::OpenRdmaCm)) {
      device_ = connection;
      reply(connection, message.header.tag, kFile, nullptr, 0);
    } else if (message.header.code == static_cast<std::uint32_t>(Code::OpenMailbox)) {
      open_mailbox(connection);
    } else if (got == os::kBellBytes) {
      answer_in_mailbox(connection);
    } else {
      const RdmaCmOut out = answer_to(message.in);
      reply(connection, message.header.tag, 0, &out, sizeof out);
    }
  }

  void open_mailbox(int connection) {
    const int file = ::memfd_create("mailbox", MFD_CLOEXEC);
    EXPECT_EQ(::ftruncate(file, os::MailboxPage::kBytes), 0);
    void* at =
        ::mmap(nullptr, os::MailboxPage::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    {
      const std::lock_guard lock(mutex_);
      mailboxes_[connection] = static_cast<os::MailboxPage*>(at);
    }
    ReplyHeader header;
    header.length = sizeof header;
    header.tag = 1;
    iovec part{&header, sizeof header};
    alignas(cmsghdr) char rights[CMSG_SPACE(sizeof file)] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = rights;
    message.msg_controllen = sizeof rights;
    *CMSG_FIRSTHDR(&message) = {CMSG_LEN(sizeof file), SOL_SOCKET, SCM_RIGHTS};
    std::memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &file, sizeof file);
    EXPECT_GT(::sendmsg(connection, &message, MSG_NOSIGNAL), 0);
    ::close(file);
  }

  void answer_in_mailbox(int connection) {
    os::MailboxPage& page = *mailboxes_.at(connection);
    if (page.asked == page.answered) return;  // a bell that comes late
    is_awake_ = stays_awake_;
    page.watched = is_awake_ ? 1 : 0;
    RdmaCmIn in;
    std::memcpy(&in, page.request + sizeof(RequestHeader), sizeof in);
    RdmaCmOut out = answer_to(in);
    ++in_mailbox_;
    const std::lock_guard lock(mutex_);
    out.ahead_size = static_cast<std::uint32_t>(ahead_.size());
    const auto length =
        static_cast<std::uint32_t>(sizeof(ReplyHeader) + sizeof out + ahead_.size());
    const ReplyHeader header{length, 0, 1, 0};
    std::memcpy(page.answer, &header, sizeof header);
    std::memcpy(page.answer + sizeof header, &out, sizeof out);
    if (!ahead_.empty()) {
      std::memcpy(page.answer + sizeof header + sizeof out, ahead_.data(), ahead_.size());
    }
    if (offer_ != 0) page.offered = offer_;
    page.answer_length = header.length;
    page.answered = page.asked.load();
    const char bell = 0;
    if (page.client_sleeps.exchange(0) != 0) ::send(connection, &bell, 1, MSG_NOSIGNAL);
  }

  RdmaCmOut answer_to(const RdmaCmIn& in) {
    const std::lock_guard lock(mutex_);
    return on_command_(in);
  }

  // The messages between the threads order these, too, but the calls that send and receive them
  // are not libc's, which ThreadSanitizer does not see.
  std::mutex mutex_;
  std::function<RdmaCmOut(const RdmaCmIn&)> on_command_;
  std::vector<std::uint8_t> ahead_;
  std::uint32_t offer_ = 0;
  std::atomic<bool> stays_awake_ = false;
  bool is_awake_ = false;
  std::atomic<int> device_ = -1;
  std::atomic<int> in_mailbox_ = 0;
  std::atomic<int> made_ = 0;
  std::map<int, os::MailboxPage*> mailboxes_;  // by connection

  std::string folder_;
  int listener_ = -1;
  std::vector<int> connections_;
  bool ended_ = false;
  std::thread thread_;
};

class PreloadRdmaCm : public ::testing::Test {
 protected:
  PreloadRdmaCm() {
    unsigned number = 0;
    fd_ = kRdmaCm.open(number, 0);
    EXPECT_GE(fd_, 0);
    EXPECT_EQ(number, kFile);
    fds::mark(fd_, {fds::Kind::Device, number, &kRdmaCm});
  }

  // As close() does.
  void close_device() {
    fds::forget(fd_);
    ::close(fd_);
  }
  ssize_t get_event() {
    GetEvent command;
    command.response = event_;
    return kRdmaCm.write(fd_, &command, sizeof command);
  }
  static RdmaCmOut nothing_there() {
    RdmaCmOut out;
    out.result = -EAGAIN;
    return out;
  }
  RdmaCmOut the_event(std::uint32_t flags = 0) const {
    RdmaCmOut out;
    out.flags = flags;
    out.address = reinterpret_cast<std::uintptr_t>(event_);
    out.size = sizeof kEvent;
    std::memcpy(out.bytes.data(), kEvent, sizeof kEvent);
    return out;
  }
  // The stand-in's may come after its event was taken; GET_EVENT would never wait again.
  void forget_notices() const {
    char byte;
    while (::recv(fd_, &byte, 1, MSG_DONTWAIT) > 0) continue;
  }
  static std::size_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  StandIn softibd_;
  int fd_ = -1;
  char event_[sizeof kEvent] = {};
};

}  // namespace ib::host_abi::preload
