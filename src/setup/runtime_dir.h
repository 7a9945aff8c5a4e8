// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The runtime directory: where the sockets, locks and logs of this user's fabrics are.
//
// $SOFTIB_RUNTIME_DIR, else $XDG_RUNTIME_DIR/softib if that directory is ours and usable (after
// `su` it belongs to another user), else /tmp/softib-<uid>. Any user can make a name in /tmp first,
// so the directory is used only if it is a real directory of ours that no other user can write to.
#pragma once

#include <sys/types.h>

#include <string>

namespace ib::softib {

// The inputs of the choice; tests have their own.
struct Surroundings {
  std::string softib_dir;  // $SOFTIB_RUNTIME_DIR
  std::string xdg_dir;     // $XDG_RUNTIME_DIR
  std::string tmp_dir = "/tmp";
  uid_t uid = 0;

  static Surroundings of_this_process();
};

// The path, absolute, whether it exists or not.
std::string choose_runtime_dir(const Surroundings& where);

// Makes the directory (0700) if it is missing and checks it. Throws CliError(Permission).
void prepare_runtime_dir(const std::string& path, uid_t uid);

// Both, for commands that start something.
std::string usable_runtime_dir();

// The files of one fabric.
struct FabricFiles {
  std::string socket;
  std::string lock;
  std::string log;
};
// Throws CliError(Usage) if the name cannot be a file name, or the socket's path is too long.
FabricFiles fabric_files(const std::string& runtime_dir, const std::string& fabric);

}  // namespace ib::softib
