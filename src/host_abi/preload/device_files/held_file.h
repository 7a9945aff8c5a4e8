// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The open file of a descriptor for the time of a call. A call of the kernel's keeps the file that
// it has begun with: another thread may close the descriptor meanwhile, and its number may get
// another file. A call that is answered here makes several calls of the kernel's, so it makes a
// descriptor of its own, at a number that programs do not look for. A child of fork() closes it.
//
// It is the descriptor itself while a process has one thread, and if there is no room for another.
// The thread may be cancelled only where release() is its clean-up handler.
#pragma once

namespace ib::host_abi::preload {

class HeldFile {
 public:
  HeldFile() = default;
  HeldFile(const HeldFile&) = delete;
  HeldFile& operator=(const HeldFile&) = delete;
  ~HeldFile() { release(this); }

  // From now on. Does nothing if it holds one already.
  void hold(int fd);
  bool holds() const { return fd_ >= 0; }
  int fd() const { return fd_; }

  // Ends it early. For pthread_cleanup_push().
  static void release(void* held_file);

 private:
  int fd_ = -1;
  bool is_own_ = false;
  bool is_registered_ = false;
};

}  // namespace ib::host_abi::preload
