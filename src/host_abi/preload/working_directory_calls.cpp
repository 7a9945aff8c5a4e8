// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// chdir(), fchdir(), getcwd() and its relatives.
#include "host_abi/preload/real.h"
#include "host_abi/preload/system_calls.h"
#include "host_abi/preload/view.h"
#include "host_abi/preload/working_directory.h"

#include <cstdlib>
#include <cstring>

namespace ib::host_abi::preload {
namespace {

constinit Real<int(const char*)> real_chdir{"chdir"};
constinit Real<int(int)> real_fchdir{"fchdir"};
constinit Real<char*(char*, std::size_t)> real_getcwd{"getcwd"};
constinit Real<char*()> real_get_current_dir_name{"get_current_dir_name"};

int entered(int result) {
  if (result == 0) working_directory::leave();
  return result;
}

// `place` is ours. Returns NotHandled if softibd is unreachable.
view::Outcome enter(Place place, int& result) {
  place.must_be_directory = true;  // ENOTDIR otherwise, and links are followed
  Path found;
  if (view::real_path(place, found, result) == view::Outcome::NotHandled) {
    return view::Outcome::NotHandled;
  }
  if (result == 0 && !working_directory::enter(found)) result = -1;
  return view::Outcome::Handled;
}

}  // namespace

extern "C" {

int preload_chdir(const char* path) IB_STANDS_FOR("chdir");
int preload_chdir(const char* path) {
  const Place place = locate(AT_FDCWD, path);
  if (place.where == Where::ElsewhereFull) return entered(real_chdir(place.at.text));
  int result = 0;
  if (place.where == Where::Ours && enter(place, result) == view::Outcome::Handled) return result;
  return entered(real_chdir(path));
}

int preload_fchdir(int fd) IB_STANDS_FOR("fchdir");
int preload_fchdir(int fd) {
  Place place;
  int result = 0;
  if (path_of(fd, place.at) && is_emulated(place.at) &&
      enter(place, result) == view::Outcome::Handled) {
    return result;
  }
  return entered(real_fchdir(fd));
}

char* preload_getcwd(char* text, std::size_t size) IB_STANDS_FOR("getcwd");
char* preload_getcwd(char* text, std::size_t size) {
  Path path;
  if (!working_directory::get(path)) return real_getcwd(text, size);
  if (text == nullptr && size == 0) return ::strdup(path.text);
  if (size == 0) {
    errno = EINVAL;
    return nullptr;
  }
  if (size <= path.length) {
    errno = ERANGE;
    return nullptr;
  }
  if (text == nullptr) text = static_cast<char*>(std::malloc(size));
  if (text != nullptr) std::memcpy(text, path.text, path.length + 1);
  return text;
}

char* preload_getcwd_chk(char* text, std::size_t size, std::size_t room)
    IB_STANDS_FOR("__getcwd_chk");
char* preload_getcwd_chk(char* text, std::size_t size, std::size_t room) {
  if (size > room) std::abort();
  return preload_getcwd(text, size);
}

char* preload_get_current_dir_name() IB_STANDS_FOR("get_current_dir_name");
char* preload_get_current_dir_name() {
  return working_directory::is_ours() ? preload_getcwd(nullptr, 0) : real_get_current_dir_name();
}

}  // extern "C"
}  // namespace ib::host_abi::preload
