// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/launch/program.h"

#include "setup/cli_error.h"
#include "setup/fd.h"
#include "softib/launch/installation.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace ib::softib {
namespace {

bool is_directory(const std::string& path) {
  struct stat s {};
  return ::stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode);
}

[[noreturn]] void not_executable(const std::string& path, int error) {
  throw CliError(Exit::NotExecutable,
                 fmt::format("cannot run {}: {}", path,
                             is_directory(path) ? "it is a directory" : std::strerror(error)));
}

std::string in_path(const std::string& name) {
  const char* variable = std::getenv("PATH");
  const std::string path = variable == nullptr ? "/bin:/usr/bin" : variable;
  std::string refused;
  std::size_t start = 0;
  while (start <= path.size()) {
    const std::size_t end = std::min(path.find(':', start), path.size());
    const std::string dir = path.substr(start, end - start);
    start = end + 1;
    std::string file = (dir.empty() ? "." : dir) + "/" + name;
    if (is_directory(file)) continue;
    if (::access(file.c_str(), X_OK) == 0) return file;
    if (errno == EACCES && ::access(file.c_str(), F_OK) == 0) refused = file;
  }
  if (!refused.empty()) not_executable(refused, EACCES);
  throw CliError(Exit::NoCommand, fmt::format("command not found: {} (PATH is {})", name, path));
}

// Facts about a program from its ELF file.
struct Made {
  bool has_loader = true;  // also if that is unknown
  bool is_go = false;
  bool is_32_bit = false;
};

// A note whose owner is "Go": the build identifier that Go's linker writes.
bool has_go_note(std::string_view notes) {
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data(), sizeof note);
    notes.remove_prefix(sizeof note);
    const std::size_t name = (std::size_t{note.n_namesz} + 3) & ~std::size_t{3};
    const std::size_t description = (std::size_t{note.n_descsz} + 3) & ~std::size_t{3};
    if (name + description > notes.size()) return false;
    if (notes.substr(0, note.n_namesz) == std::string_view("Go\0\0", 4)) return true;
    notes.remove_prefix(name + description);
  }
  return false;
}

Made how_made(const std::string& path) {
  const std::string head = read_file(path, std::size_t{64} * 1024);
  Elf64_Ehdr header;
  if (head.size() < sizeof header) return {};
  std::memcpy(&header, head.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
  if (header.e_ident[EI_CLASS] != ELFCLASS64) {
    return {.is_32_bit = header.e_ident[EI_CLASS] == ELFCLASS32};
  }
  Made made{.has_loader = false};
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    const std::size_t at = header.e_phoff + i * sizeof part;
    if (at > head.size() || head.size() - at < sizeof part) return {};
    std::memcpy(&part, head.data() + at, sizeof part);
    made.has_loader |= part.p_type == PT_INTERP;
    if (part.p_type == PT_NOTE && part.p_offset < head.size()) {
      made.is_go |= has_go_note(std::string_view(head).substr(part.p_offset, part.p_filesz));
    }
  }
  return made;
}

}  // namespace

std::string find_program(const std::string& name) {
  if (name.find('/') == std::string::npos) return in_path(name);
  if (::access(name.c_str(), F_OK) != 0) {
    const int error = errno;
    const bool missing = error == ENOENT || error == ENOTDIR;
    if (!missing) not_executable(name, error);
    throw CliError(Exit::NoCommand, fmt::format("command not found: {}", name));
  }
  if (is_directory(name)) not_executable(name, EISDIR);
  if (::access(name.c_str(), X_OK) != 0) not_executable(name, errno);
  return name;
}

std::string blind_reason(const std::string& path) {
  struct stat s {};
  struct statvfs system {};
  const bool gives_rights =
      ::statvfs(path.c_str(), &system) != 0 || (system.f_flag & ST_NOSUID) == 0;
  if (gives_rights && ::stat(path.c_str(), &s) == 0 && (s.st_mode & (S_ISUID | S_ISGID)) != 0 &&
      s.st_uid != ::getuid()) {
    return "it is set-user-ID, so the system ignores LD_PRELOAD";
  }
  const bool has_capabilities =
      ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0 && ::getuid() != 0;
  if (gives_rights && has_capabilities) {
    return "its file has capabilities (getcap), so the system ignores LD_PRELOAD";
  }
  const Made made = how_made(path);
  if (!made.has_loader) {
    return "it is statically linked, so there is no loader to heed LD_PRELOAD";
  }
  if (made.is_go) {
    return "it is a Go program, whose run-time opens files without libc and so finds no HCA in "
           "/sys; what it does through libibverbs (cgo) does see it";
  }
  if (made.is_32_bit && find_installation().lib_dir_32.empty()) {
    return "it is a 32-bit program, and softib is installed without libraries for those "
           "(softib-libs32)";
  }
  return {};
}

std::string lost_environment(const std::vector<std::string>& words) {
  const std::string name = words.front().substr(words.front().rfind('/') + 1);
  const std::vector<std::string_view> clearing =
      name == "env"       ? std::vector<std::string_view>{"-", "-i", "--ignore-environment"}
      : name == "setpriv" ? std::vector<std::string_view>{"--reset-env"}
                          : std::vector<std::string_view>{};
  // Its own options end with the first word that is none; what follows is another program's.
  for (std::size_t i = 1; i < words.size() && words[i].starts_with('-'); ++i) {
    if (std::find(clearing.begin(), clearing.end(), words[i]) == clearing.end()) continue;
    return fmt::format(
        "`{} {}` clears the environment, with LD_PRELOAD; put `softib run --` directly before the "
        "program",
        name, words[i]);
  }
  return {};
}

void become_program(const std::vector<std::string>& words, const Environment& environment) {
  std::vector<std::string> copies = words;
  std::vector<std::string> variables = as_words(environment);
  const std::vector<char*> argv = pointers(copies);
  const std::vector<char*> envp = pointers(variables);
  // Searches PATH again, and passes scripts without "#!" to the shell.
  ::execvpe(argv[0], argv.data(), envp.data());
  const int error = errno;
  const std::string path = find_program(words.front());
  if (error == ENOENT) {
    throw CliError(Exit::NoCommand,
                   fmt::format("cannot run {}: its interpreter or loader does not exist", path));
  }
  not_executable(path, error);
}

}  // namespace ib::softib
