// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/runtime_dir.h"

#include "setup/cli_error.h"
#include "setup/fd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace ib::softib {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Absolute, since programs may change their directory; without trailing slashes, since "link/"
// would follow the link that "link" is checked for.
std::string tidy(const std::string& path) {
  std::error_code error;
  std::string full = std::filesystem::absolute(path, error).lexically_normal().string();
  if (error) full = path;
  while (full.size() > 1 && full.back() == '/') full.pop_back();
  return full;
}

// Returns whether a directory that already existed is ours.
bool is_ours(const std::string& path, uid_t uid) {
  struct stat s {};
  return ::lstat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == uid &&
         (s.st_mode & 022u) == 0 && ::access(path.c_str(), W_OK | X_OK) == 0;
}

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw CliError(Exit::Permission,
                 fmt::format("cannot use the runtime directory {}: {}\n"
                             "  Set SOFTIB_RUNTIME_DIR to a directory of yours (mode 0700).",
                             path, what));
}

}  // namespace

Surroundings Surroundings::of_this_process() {
  Surroundings here;
  here.softib_dir = environment("SOFTIB_RUNTIME_DIR");
  here.xdg_dir = environment("XDG_RUNTIME_DIR");
  here.uid = ::geteuid();
  return here;
}

std::string choose_runtime_dir(const Surroundings& where) {
  if (!where.softib_dir.empty()) return tidy(where.softib_dir);
  if (!where.xdg_dir.empty() && where.xdg_dir.front() == '/' && is_ours(where.xdg_dir, where.uid)) {
    return tidy(where.xdg_dir + "/softib");
  }
  return fmt::format("{}/softib-{}", where.tmp_dir, where.uid);
}

void prepare_runtime_dir(const std::string& path, uid_t uid) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    const int error = errno;
    refuse(path, fmt::format("mkdir: {}", std::strerror(error)));
  }
  struct stat s {};
  if (::lstat(path.c_str(), &s) != 0) refuse(path, fmt::format("lstat: {}", std::strerror(errno)));
  if (S_ISLNK(s.st_mode)) refuse(path, "it is a symbolic link; somebody may have put it there");
  if (!S_ISDIR(s.st_mode)) refuse(path, "it is not a directory");
  if (s.st_uid != uid) {
    refuse(path, fmt::format("it belongs to uid {}, you are uid {}", s.st_uid, uid));
  }
  if ((s.st_mode & 022u) != 0) {
    refuse(path, fmt::format("others can write to it (mode {:04o}); chmod 0700 it",
                             static_cast<unsigned>(s.st_mode & 07777u)));
  }
  if (::access(path.c_str(), R_OK | W_OK | X_OK) != 0) {
    refuse(path, fmt::format("no permission to make files in it: {}", std::strerror(errno)));
  }
}

std::string usable_runtime_dir() {
  const Surroundings here = Surroundings::of_this_process();
  std::string path = choose_runtime_dir(here);
  prepare_runtime_dir(path, here.uid);
  return path;
}

FabricFiles fabric_files(const std::string& runtime_dir, const std::string& fabric) {
  const bool clean = std::all_of(fabric.begin(), fabric.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
  if (fabric.empty() || fabric.size() > 32 || !clean || fabric[0] == '.' || fabric[0] == '-') {
    throw CliError(Exit::Usage, fmt::format("bad fabric name \"{}\": use 1 to 32 letters, digits, "
                                            "'_', '-' or '.', starting with a letter or digit",
                                            fabric));
  }
  const std::string stem = runtime_dir + "/" + fabric;
  FabricFiles files{stem + ".sock", stem + ".lock", stem + ".log"};
  constexpr std::size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (files.socket.size() > kLongest) {
    throw CliError(Exit::Permission,
                   fmt::format("the socket's path {} has {} characters, the system allows {}\n"
                               "  Set SOFTIB_RUNTIME_DIR to a directory with a shorter name.",
                               files.socket, files.socket.size(), kLongest));
  }
  return files;
}

}  // namespace ib::softib
