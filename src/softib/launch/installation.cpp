// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/launch/installation.h"

#include "setup/cli_error.h"
#include "verbs/private_abi.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

namespace ib::softib {
namespace {

namespace fs = std::filesystem;

std::string own_bin_dir() {
  std::error_code error;
  fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) {  // no /proc: the path that the kernel was given
    const unsigned long name = ::getauxval(AT_EXECFN);
    self = fs::absolute(std::bit_cast<const char*>(name), error);
  }
  return self.parent_path().string();
}

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error) && !error;
}

// Names the folder of 32-bit libraries too, if there is one and the loader's $LIB leads to both.
void find_32_bit(Installation& found, const std::string& prefix) {
  found.loader_dir = found.lib_dir;
  const std::string folder = loader_library_folder();
  const std::string other = folder_of_32_bit(folder);
  std::error_code error;
  const std::string own = prefix + "/" + folder + "/softib";
  if (other.empty() || !fs::equivalent(own, found.lib_dir, error) || error) return;
  const std::string dir = prefix + "/" + other + "/softib";
  if (!exists(dir + "/" + kPreloadName)) return;
  found.lib_dir_32 = dir;
  found.loader_dir = prefix + "/$LIB/softib";
}

// The libraries that each installation has.
std::vector<std::string> library_names() {
  std::vector<std::string> names{kPreloadName};
  for (const int abi : verbs::kPrivateAbis) names.push_back(provider_name(abi));
  return names;
}

}  // namespace

std::string provider_name(int private_abi) {
  return fmt::format("{}-rdmav{}.so", kProviderStem, private_abi);
}

std::string folder_of_32_bit(std::string_view folder) {
  if (folder == "lib/x86_64-linux-gnu") return "lib/i386-linux-gnu";
  return folder == "lib64" ? "lib" : "";
}

std::string loader_library_folder() {
  constexpr std::string_view kUsr = "/usr/";
  void* const self = ::dlopen(nullptr, RTLD_LAZY);
  Dl_serinfo size{};
  if (self == nullptr || ::dlinfo(self, RTLD_DI_SERINFOSIZE, &size) != 0) return {};
  std::vector<std::byte> space(std::max(size.dls_size, sizeof size));
  auto* const searched = reinterpret_cast<Dl_serinfo*>(space.data());
  *searched = size;
  if (::dlinfo(self, RTLD_DI_SERINFO, searched) != 0) return {};
  // The loader's own folders come as pairs, /X and /usr/X; glibc does not mark them.
  std::string_view before;
  for (unsigned i = 0; i < searched->dls_cnt; ++i) {
    const std::string_view path = searched->dls_serpath[i].dls_name;
    const bool is_default = path.starts_with(kUsr) && path.substr(kUsr.size() - 1) == before;
    if (is_default) return std::string(path.substr(kUsr.size()));
    before = path;
  }
  return {};
}

Installation find_installation(std::string bin_dir) {
  Installation found;
  found.bin_dir = bin_dir.empty() ? own_bin_dir() : std::move(bin_dir);
  const std::string prefix = fs::path(found.bin_dir).parent_path().string();
  found.searched = {prefix + "/lib"};
#ifdef __x86_64__
  found.searched.push_back(prefix + "/lib/x86_64-linux-gnu/softib");
#elif defined(__aarch64__)
  found.searched.push_back(prefix + "/lib/aarch64-linux-gnu/softib");
#endif
  found.searched.push_back(prefix + "/lib64/softib");
  found.searched.push_back(prefix + "/lib/softib");  // of RPM distributions: for 32-bit programs
  found.searched.push_back(prefix + "/lib64");
  for (const std::string& dir : found.searched) {
    // One of them decides, so that the error can name the others.
    const std::vector<std::string> names = library_names();
    if (std::any_of(names.begin(), names.end(),
                    [&](const std::string& name) { return exists(dir + "/" + name); })) {
      found.lib_dir = dir;
      break;
    }
  }
  find_32_bit(found, prefix);
  return found;
}

namespace {

void require_program(const std::string& path, const char* name) {
  if (::access(path.c_str(), X_OK) == 0) return;
  const int error = errno;
  throw CliError(Exit::Installation,
                 fmt::format("cannot run the daemon {}: {}\n"
                             "  softib and {} must be in the same directory; build or install "
                             "softib again.",
                             path, std::strerror(error), name));
}

}  // namespace

void require_daemon(const Installation& installation) {
  require_program(installation.daemon(), "softibd");
}

void require_net_program(const Installation& installation) {
  require_program(installation.net_program(), "softib-net");
}

void require_libraries(const Installation& installation) {
  if (installation.lib_dir.empty()) {
    throw CliError(Exit::Installation,
                   fmt::format("cannot find {} and {}; looked in {}\n"
                               "  Build or install softib again; the libraries belong beside bin/, "
                               "in lib/.",
                               kPreloadName, provider_name(verbs::kPrivateAbis.front()),
                               fmt::join(installation.searched, ", ")));
  }
  for (const std::string& name : library_names()) {
    const std::string path = installation.lib_dir + "/" + name;
    if (::access(path.c_str(), R_OK) == 0) continue;
    const int error = errno;
    throw CliError(Exit::Installation,
                   fmt::format("cannot read the library {}: {} (as uid {})\n"
                               "  Build or install softib again, readable for those who use it.",
                               path, std::strerror(error), ::geteuid()));
  }
  // The dynamic loader splits LD_PRELOAD at blanks and colons and has no quotes.
  if (installation.lib_dir.find_first_of(" :;") != std::string::npos) {
    throw CliError(Exit::Installation,
                   fmt::format("softib's libraries are in \"{}\": LD_PRELOAD cannot name a path "
                               "with a blank, ':' or ';'\n  Install softib somewhere else.",
                               installation.lib_dir));
  }
}

}  // namespace ib::softib
