// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A connection to softibd for one request and its answer. A few of a process are kept for the next
// requests, with their mailboxes, at numbers that programs do not look for; a request that comes
// while other threads, a signal handler or the parent of a fork have them gets a new one. Its
// number may be closed or used again behind our back, so it is checked before it is used; a request
// and an answer that go through the mailbox do without it.
#pragma once

#include "host_abi/preload/remote.h"
#include "linux/client/client_mailbox.h"

#include <cstdint>

namespace ib::host_abi::preload {

class CommandConnection {
 public:
  // The id of the calling process; that of its parent in a vfork() child, which has its memory.
  static int this_process();

  explicit CommandConnection(int process);
  CommandConnection(const CommandConnection&) = delete;
  CommandConnection& operator=(const CommandConnection&) = delete;
  ~CommandConnection();  // closes it, unless keep()

  // -1: there is none. is_still_there() comes before its use.
  int socket() const { return socket_; }
  // Returns false, and forgets it, if the number is another file's by now.
  bool is_still_there();
  remote::Reply why() const { return why_; }
  bool was_kept() const { return was_kept_; }
  // A mailbox of the connection; it may have none.
  os::ClientMailbox& mailbox() { return mailbox_; }
  // The answer has come, whole: the connection may serve again. One that serves often gets a
  // mailbox.
  void keep();
  // Another one, instead of one that was kept for too long.
  void renew();

 private:
  bool open_mailbox();
  void close();

  int process_;
  int socket_ = -1;
  bool was_kept_ = false;
  bool is_checked_ = true;
  std::uint64_t word_ = 0;  // describes it
  remote::Reply why_ = remote::Reply::Ok;
  os::ClientMailbox mailbox_;
};

}  // namespace ib::host_abi::preload
