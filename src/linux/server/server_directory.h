// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The place of one daemon in its runtime directory: the socket it listens on and the lock that
// makes it the only one of its name.
//
// The lock (flock on <name>.lock, which holds the pid) is the truth: it goes with its holder, even
// one that was killed, so its next holder may remove a socket that was left behind.
#pragma once

#include "base/result.h"
#include "platform/control_channel.h"

#include <cstdint>
#include <memory>
#include <string>

namespace ib::os {

class ServerDirectory {
 public:
  // Makes `directory` (mode 0700) if it is missing, and checks that it is ours and that no other
  // user can write to it.
  static Status prepare(const std::string& directory, std::string& reason);

  // Passive level: it may wait for half a second. Prepares `directory`, takes the lock and listens
  // on <directory>/<name>.sock (mode 0600).
  // AlreadyExists: another one is up; AccessDenied: the directory is not fit.
  static Result<std::unique_ptr<ServerDirectory>> claim(const std::string& directory,
                                                        const std::string& name,
                                                        std::string& reason);
  ServerDirectory(const ServerDirectory&) = delete;
  ServerDirectory& operator=(const ServerDirectory&) = delete;
  ~ServerDirectory();  // removes both files, if they are still those that we made

  const std::string& socket_path() const { return socket_path_; }
  // Again, for a process that was forked after the claim.
  void write_pid();
  platform::NativeHandle take_listener() { return std::move(listener_); }
  // Removes the socket's name: from now on no client can connect. The lock stays.
  void remove_socket();

 private:
  struct FileIdentity {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    bool operator==(const FileIdentity&) const = default;
  };

  ServerDirectory() = default;
  static FileIdentity identity_of(const std::string& path);
  static FileIdentity identity_of(int descriptor);
  std::uint32_t listening_process() const;
  Status is_up_already(const std::string& pid, std::string& reason) const;
  Status take_lock(std::string& reason);
  Status clear_socket_path(std::string& reason);
  Status listen(std::string& reason);

  std::string name_;
  std::string socket_path_;
  std::string lock_path_;
  platform::NativeHandle lock_;
  platform::NativeHandle listener_;
  FileIdentity socket_identity_;  // of the file that we made; zeros: none
};

}  // namespace ib::os
