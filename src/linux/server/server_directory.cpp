// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/server/server_directory.h"

#include "linux/process/client_handle.h"
#include "linux/server/server_message_io.h"
#include "platform/level.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace ib::os {
namespace {

constexpr int kBacklog = 1024;
// A command of the user may hold the lock for a moment, to check whether the daemon is dead.
constexpr int kLockTries = 50;
constexpr timespec kLockPause{0, 10'000'000};

std::string system_error(const std::string& what, int error) {
  return what + ": " + std::strerror(error);
}

Status refuse(Status status, std::string text, std::string& reason) {
  reason = std::move(text);
  return status;
}

bool fill_address(const std::string& path, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, path.data(), path.size());
  return true;
}

// sockaddr_un is passed as sockaddr: the socket API predates void*.
const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

std::string pid_in(int file) {
  std::array<char, 16> text{};
  const ssize_t length = ::pread(file, text.data(), text.size() - 1, 0);
  const int pid = length > 0 ? std::atoi(text.data()) : 0;
  return pid > 0 ? std::to_string(pid) : "unknown";
}

}  // namespace

ServerDirectory::FileIdentity ServerDirectory::identity_of(const std::string& path) {
  struct stat s {};
  if (::lstat(path.c_str(), &s) != 0) return {};
  return {s.st_dev, s.st_ino};
}

ServerDirectory::FileIdentity ServerDirectory::identity_of(int descriptor) {
  struct stat s {};
  if (::fstat(descriptor, &s) != 0) return {};
  return {s.st_dev, s.st_ino};
}

Result<std::unique_ptr<ServerDirectory>> ServerDirectory::claim(const std::string& directory,
                                                                const std::string& name,
                                                                std::string& reason) {
  require_passive("ServerDirectory::claim");
  std::unique_ptr<ServerDirectory> self(new ServerDirectory);
  self->name_ = name;
  self->socket_path_ = directory + "/" + name + ".sock";
  self->lock_path_ = directory + "/" + name + ".lock";
  if (sockaddr_un address; !fill_address(self->socket_path_, address)) {
    return refuse(Status::InvalidParameter,
                  fmt::format("the socket's path {} is too long: the system allows {} characters; "
                              "choose a runtime directory with a shorter name",
                              self->socket_path_, sizeof(address.sun_path) - 1),
                  reason);
  }
  IB_CHECK(prepare(directory, reason));
  IB_CHECK(self->take_lock(reason));
  IB_CHECK(self->clear_socket_path(reason));
  IB_CHECK(self->listen(reason));
  return self;
}

ServerDirectory::~ServerDirectory() {
  remove_socket();
  if (lock_.valid() && identity_of(lock_path_) == identity_of(lock_.get())) {
    ::unlink(lock_path_.c_str());
  }
}

void ServerDirectory::remove_socket() {
  if (socket_identity_ != FileIdentity{} && identity_of(socket_path_) == socket_identity_) {
    ::unlink(socket_path_.c_str());
  }
  socket_identity_ = {};
}

Status ServerDirectory::prepare(const std::string& directory, std::string& reason) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return refuse(Status::IoError, system_error("cannot make the directory " + directory, errno),
                  reason);
  }
  const std::string what = "cannot use the runtime directory " + directory + ": ";
  struct stat s {};
  if (::lstat(directory.c_str(), &s) != 0)
    return refuse(Status::IoError, system_error(what + "lstat", errno), reason);
  // Others could have put it there, to read or answer the requests of our clients.
  if (S_ISLNK(s.st_mode)) return refuse(Status::AccessDenied, what + "it is a link", reason);
  if (!S_ISDIR(s.st_mode))
    return refuse(Status::AccessDenied, what + "it is not a directory", reason);
  if (s.st_uid != ::geteuid()) {
    return refuse(
        Status::AccessDenied,
        fmt::format("{}it belongs to uid {}, softibd runs as uid {}", what, s.st_uid, ::geteuid()),
        reason);
  }
  if ((s.st_mode & 022u) != 0) {
    return refuse(Status::AccessDenied,
                  what + "others can write to it; it must be yours alone (mode 0700)", reason);
  }
  return Status::Ok;
}

Status ServerDirectory::take_lock(std::string& reason) {
  for (int tries = 0; tries < kLockTries; ++tries) {
    if (tries > 0) ::nanosleep(&kLockPause, nullptr);
    lock_ =
        own_descriptor(::open(lock_path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock_.valid())
      return refuse(Status::IoError, system_error("cannot open " + lock_path_, errno), reason);
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) {
      // Its last holder may have removed the file between our open() and our flock(): then the lock
      // is on a file without a name.
      if (identity_of(lock_path_) != identity_of(lock_.get())) continue;
      write_pid();
      return Status::Ok;
    }
    if (errno != EWOULDBLOCK && errno != EINTR)
      return refuse(Status::IoError, system_error("cannot lock " + lock_path_, errno), reason);
    if (listening_process() != 0) break;  // a daemon; else it may be a command that checks
  }
  const std::string pid = pid_in(lock_.get());
  lock_.reset();  // not ours: the destructor must not remove it
  return is_up_already(pid, reason);
}

void ServerDirectory::write_pid() {
  const std::string text = std::to_string(::getpid()) + "\n";
  // For people and error texts only: failure does no harm. In this order, since the first line may
  // be read meanwhile.
  if (::pwrite(lock_.get(), text.data(), text.size(), 0) < 0) return;
  (void)!::ftruncate(lock_.get(), static_cast<off_t>(text.size()));
}

// Returns the process that listens on our path, or 0.
std::uint32_t ServerDirectory::listening_process() const {
  sockaddr_un address;
  fill_address(socket_path_, address);
  const platform::NativeHandle probe =
      own_descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(probe.get(), generic(address), sizeof(address)) != 0) return 0;
  return peer_of(probe.get()).pid;
}

Status ServerDirectory::is_up_already(const std::string& pid, std::string& reason) const {
  reason = "fabric " + name_ + " is already up (softibd, pid " + pid + ")";
  return Status::AlreadyExists;
}

// We hold the lock, so a file there should be the remains of a daemon that was killed. But the lock
// file may have been deleted by hand under a living one.
Status ServerDirectory::clear_socket_path(std::string& reason) {
  struct stat s {};
  if (::lstat(socket_path_.c_str(), &s) != 0) return Status::Ok;
  if (!S_ISSOCK(s.st_mode)) {
    return refuse(Status::AlreadyExists, socket_path_ + " exists and is not a socket; remove it",
                  reason);
  }
  if (const std::uint32_t pid = listening_process(); pid != 0)
    return is_up_already(std::to_string(pid), reason);
  ::unlink(socket_path_.c_str());
  return Status::Ok;
}

Status ServerDirectory::listen(std::string& reason) {
  sockaddr_un address;
  fill_address(socket_path_, address);
  listener_ = own_descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_.valid())
    return refuse(Status::IoError, system_error("cannot make a socket", errno), reason);
  if (::bind(listener_.get(), generic(address), sizeof(address)) != 0)
    return refuse(Status::IoError, system_error("cannot bind " + socket_path_, errno), reason);
  socket_identity_ = identity_of(socket_path_);
  // Before listen(), so that no client connects while the umask still decides the access.
  if (::chmod(socket_path_.c_str(), 0600) != 0 || ::listen(listener_.get(), kBacklog) != 0)
    return refuse(Status::IoError, system_error("cannot listen on " + socket_path_, errno), reason);
  return Status::Ok;
}

}  // namespace ib::os
